//! Replies without a verdict: requested once more, and then a failure without a score.

use super::*;

/// Checks that two such replies fail the evaluation. Returns the failure.
async fn failure_of_reply(text: &str) -> JudgeFailure {
    let scene = Scene::with_own_provider("openai").await;
    scene.own.set_behaviours([Behaviour::RepliesWith(text.to_owned())]);
    let failure = scene.request_failure().await;
    assert_eq!(
        (failure.kind, failure.usage.prompt_tokens),
        (JudgeFailureKind::Unreadable, Some(2_000)),
        "{text}"
    );
    assert_eq!(failure.retry_after, None);
    let requests = scene.own.take_requests();
    assert_eq!((requests.len(), requests[1].message_texts().len()), (2, 4), "{text}");
    // The provider works, so other callers need not wait.
    scene.own.set_behaviours([Behaviour::Succeeds]);
    assert!(scene.request_verdict().await.is_ok());
    scene.stop().await;
    failure
}

#[tokio::test]
async fn reply_without_verdict_fails_after_one_repetition() {
    for text in [
        "",
        "As an AI model, I cannot rate this.",
        r#"{"reasoning": "It is"#,
        r#"{"begründung": "Gut.", "punktzahl": 0.8}"#,
        r#"{"reasoning": "Good.", "score": 7}"#,
        r#"{"reasoning": "Good.", "score": "very high"}"#,
        "[0.8]",
        "null",
    ] {
        failure_of_reply(text).await;
    }
    let message = failure_of_reply(r#"{"reasoning": "Good.", "score": 7}"#).await.message;
    assert!(message.starts_with("the judge gpt-4o returned no verdict: "), "{message}");
}

#[tokio::test]
async fn repeated_request_with_verdict_succeeds() {
    let scene = Scene::with_own_provider("openai").await;
    scene.own.set_behaviours([
        Behaviour::RepliesWith(r#"{"reasoning": "Good.", "score": 7}"#.to_owned()),
        Behaviour::Succeeds,
    ]);
    let judged = scene.request_verdict().await.unwrap();
    assert_eq!((judged.verdict.score, judged.usage.cost), (0.75, Some(7_000_000_000)));
    let requests = scene.own.take_requests();
    // The repetition continues the conversation in the same mode.
    assert_eq!(requests[1].output_mode(), "schema");
    assert_eq!(requests[1].message_texts()[..2], requests[0].message_texts());
    assert!(requests[1].message_texts()[2].contains("\"score\": 7"));
    scene.stop().await;
}

#[tokio::test]
async fn truncated_reply_is_requested_with_more_tokens() {
    for (provider, name) in [("openai", "max_completion_tokens"), ("anthropic", "max_tokens")] {
        let scene = Scene::with_own_provider(provider).await;
        scene.own.set_behaviours([Behaviour::TruncatesReply, Behaviour::Succeeds]);
        assert!(scene.request_verdict().await.is_ok());
        let tokens: Vec<Value> = scene.own.take_requests().iter().map(|it| it.body[name].clone()).collect();
        assert_eq!(tokens, [4_096, 8_192]);
        scene.own.set_behaviours([Behaviour::TruncatesReply]);
        let message = scene.request_failure().await.message;
        assert!(message.ends_with("truncated at 8192 tokens"), "{message}");
        scene.stop().await;
    }
}

/// A reply outside the protocol is not requested again.
#[tokio::test]
async fn reply_outside_the_protocol_is_not_repeated() {
    for body in ["<html>Welcome</html>", "{}", "[]", "[[[[", r#"{"choices": []}"#, ""] {
        let scene = Scene::with_own_provider("openai").await;
        scene.own.set_behaviours([Behaviour::Body(body.to_owned())]);
        let failure = scene.request_failure().await;
        assert_eq!(
            (failure.kind, scene.own.request_count()),
            (JudgeFailureKind::Unreadable, 1),
            "{body}: {failure}"
        );
        scene.stop().await;
    }
    let deep = format!("{{\"choices\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let scene = Scene::with_own_provider("anthropic").await;
    scene.own.set_behaviours([Behaviour::Body(deep)]);
    assert_eq!(scene.request_failure().await.kind, JudgeFailureKind::Unreadable);
    scene.stop().await;
}

#[tokio::test]
async fn endless_judge_reply_is_a_failure() {
    let scene = Scene::with_own_provider("openai").await;
    scene.own.set_behaviours([Behaviour::SendsEndlessly]);
    let failure = scene.request_failure().await;
    assert_eq!(failure.kind, JudgeFailureKind::Unreadable);
    assert!(failure.message.contains("larger than 262144 bytes"), "{failure}");
    let long = format!("{} {}", "x".repeat(200_000), provider::VERDICT_JSON);
    scene.own.set_behaviours([Behaviour::RepliesWith(long), Behaviour::Succeeds]);
    assert!(scene.request_verdict().await.is_ok());
    let again = scene.own.take_requests().pop().unwrap();
    assert!(
        again.message_texts().concat().len() < 20_000,
        "the repetition contains the whole unparsable reply"
    );
    scene.stop().await;
}
