//! Replies without a verdict: requested once more, and then a failure without a score.

use super::*;

/// Checks that two such replies are no verdict.
async fn is_none(text: &str) -> JudgeFailure {
    let scene = Scene::own("openai").await;
    scene.own.turn([Mood::Says(text.to_owned())]);
    let failure = scene.fails().await;
    assert_eq!((failure.kind, failure.usage.prompt_tokens), (Kind::Unreadable, Some(2_000)), "{text}");
    assert_eq!(failure.retry_after, None);
    let asked = scene.own.asked();
    assert_eq!((asked.len(), asked[1].said().len()), (2, 4), "{text}");
    // The provider works, so other callers need not wait.
    scene.own.turn([Mood::Well]);
    assert!(scene.ask().await.is_ok());
    scene.stop().await;
    failure
}

#[tokio::test]
async fn what_is_no_verdict() {
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
        is_none(text).await;
    }
    let told = is_none(r#"{"reasoning": "Good.", "score": 7}"#).await.message;
    assert!(told.starts_with("the judge gpt-4o returned no verdict: "), "{told}");
}

#[tokio::test]
async fn one_repair_is_enough() {
    let scene = Scene::own("openai").await;
    scene.own.turn([Mood::Says(r#"{"reasoning": "Good.", "score": 7}"#.to_owned()), Mood::Well]);
    let judged = scene.ask().await.unwrap();
    assert_eq!((judged.verdict.score, judged.usage.cost), (0.75, Some(7_000_000_000)));
    let asked = scene.own.asked();
    // The repetition continues the conversation in the same mode.
    assert_eq!(asked[1].rung(), "schema");
    assert_eq!(asked[1].said()[..2], asked[0].said());
    assert!(asked[1].said()[2].contains("\"score\": 7"));
    scene.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_cut_off_may_be_longer() {
    for (provider, name) in [("openai", "max_completion_tokens"), ("anthropic", "max_tokens")] {
        let scene = Scene::own(provider).await;
        scene.own.turn([Mood::Cut, Mood::Well]);
        assert!(scene.ask().await.is_ok());
        let tokens: Vec<Value> = scene.own.asked().iter().map(|it| it.body[name].clone()).collect();
        assert_eq!(tokens, [4_096, 8_192]);
        scene.own.turn([Mood::Cut]);
        let told = scene.fails().await.message;
        assert!(told.ends_with("truncated at 8192 tokens"), "{told}");
        scene.stop().await;
    }
}

/// A reply outside the protocol is not requested again.
#[tokio::test]
async fn another_protocol() {
    for body in ["<html>Welcome</html>", "{}", "[]", "[[[[", r#"{"choices": []}"#, ""] {
        let scene = Scene::own("openai").await;
        scene.own.turn([Mood::Body(body.to_owned())]);
        let failure = scene.fails().await;
        assert_eq!((failure.kind, scene.own.count()), (Kind::Unreadable, 1), "{body}: {failure}");
        scene.stop().await;
    }
    let deep = format!("{{\"choices\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let scene = Scene::own("anthropic").await;
    scene.own.turn([Mood::Body(deep)]);
    assert_eq!(scene.fails().await.kind, Kind::Unreadable);
    scene.stop().await;
}

#[tokio::test]
async fn an_answer_without_end() {
    let scene = Scene::own("openai").await;
    scene.own.turn([Mood::Endless]);
    let failure = scene.fails().await;
    assert_eq!(failure.kind, Kind::Unreadable);
    assert!(failure.message.contains("larger than 262144 bytes"), "{failure}");
    let long = format!("{} {}", "x".repeat(200_000), provider::VERDICT);
    scene.own.turn([Mood::Says(long), Mood::Well]);
    assert!(scene.ask().await.is_ok());
    let again = scene.own.asked().pop().unwrap();
    assert!(again.said().concat().len() < 20_000, "what can't be read is not sent back whole");
    scene.stop().await;
}
