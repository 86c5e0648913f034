//! The structured-output mode: the most reliable one that the server and the model support.

use super::*;

const RESPONSE_FORMAT: &[&str] = &["response_format"];

#[tokio::test]
async fn openai_judge_uses_json_schema() {
    let scene = Scene::with_own_provider("openai").await;
    let judged = scene.request_verdict().await.unwrap();
    assert_eq!((judged.verdict.score, judged.verdict.reasoning.as_str()), (0.75, "It answers the question."));
    assert_eq!((judged.usage.model.as_deref(), judged.usage.prompt_tokens), (Some("gpt-4o"), Some(1_000)));
    // The cost of 1,000 tokens at 2.5 and 100 at 10 dollars per million.
    assert_eq!((judged.usage.completion_tokens, judged.usage.cost), (Some(100), Some(3_500_000_000)));
    let request = scene.own.take_requests().remove(0);
    assert_eq!((request.path.as_str(), request.key.as_str()), ("/v1/chat/completions", TENANT_KEY));
    let format = &request.body["response_format"]["json_schema"];
    assert_eq!((&format["strict"], &format["schema"]), (&json!(true), &judge_request().schema));
    assert_eq!(
        (&request.body["temperature"], &request.body["max_completion_tokens"]),
        (&json!(0), &json!(4_096))
    );
    assert_eq!(request.message_texts(), [judge_request().system, judge_request().user]);
    scene.stop().await;
}

#[tokio::test]
async fn anthropic_judge_falls_back_from_schema_to_tool() {
    let scene = Scene::with_own_provider("anthropic").await;
    scene.store_credential("anthropic", json!({"judge_model_cheap": "claude-haiku-4-5"})).await.ok();
    let judged = scene.request_verdict().await.unwrap();
    // The cost of 1,000 tokens at 1 and 100 at 5 dollars per million.
    assert_eq!((judged.verdict.score, judged.usage.cost), (0.75, Some(1_500_000_000)));
    let request = scene.own.take_requests().remove(0);
    assert_eq!(
        (request.path.as_str(), request.key.as_str(), request.output_mode()),
        ("/v1/messages", TENANT_KEY, "schema")
    );
    assert_eq!(
        (&request.body["system"], request.message_texts()),
        (&json!(judge_request().system), vec!["Output of the model: the invoice is paid."])
    );
    scene.own.set_behaviours([Behaviour::RejectsFields(&["output_config", "temperature"])]);
    assert_eq!(scene.request_verdict().await.unwrap().verdict.score, 0.75);
    // After the rejection of both, the request omits both; the next request omits them at once.
    assert_eq!(scene.own.take_output_modes(), ["schema", "tool", "tool"]);
    assert!(scene.request_verdict().await.is_ok());
    let requests = scene.own.take_requests();
    assert_eq!(
        (requests.len(), requests[0].output_mode(), requests[0].body.get("temperature")),
        (1, "tool", None)
    );
    scene.stop().await;
}

/// Checks that a rejected feature is omitted, and that this is cached.
async fn check_fallback(behaviour: Behaviour, first: &[&str], then: &str) {
    let scene = Scene::with_own_provider("openai").await;
    scene.own.set_behaviours([behaviour.clone()]);
    assert_eq!(scene.request_verdict().await.unwrap().verdict.score, 0.75, "{behaviour:?}");
    assert_eq!(scene.own.take_output_modes(), first, "{behaviour:?}");
    assert!(scene.request_verdict().await.is_ok());
    assert_eq!(scene.own.take_output_modes(), [then], "{behaviour:?}");
    scene.stop().await;
}

#[tokio::test]
async fn rejected_request_feature_is_omitted() {
    check_fallback(Behaviour::RejectsFields(RESPONSE_FORMAT), &["schema", "tool"], "tool").await;
    check_fallback(
        Behaviour::RejectsFields(&["response_format", "tools"]),
        &["schema", "tool", "json", "text"],
        "text",
    )
    .await;
    check_fallback(Behaviour::RejectsFields(&["temperature"]), &["schema", "schema"], "schema").await;
    let both = &["max_completion_tokens", "max_tokens"];
    check_fallback(Behaviour::RejectsFields(both), &["schema"; 3], "schema").await;
}

#[tokio::test]
async fn unspecific_rejection_falls_back_through_the_modes() {
    check_fallback(Behaviour::RejectsFieldsUnnamed(RESPONSE_FORMAT), &["schema", "tool"], "tool").await;
    check_fallback(
        Behaviour::RejectsFieldsUnnamed(&["temperature"]),
        &["schema", "tool", "json", "text", "text"],
        "text",
    )
    .await;
    // A mode that has worked before is kept, because a failure is then caused by the request.
    let scene = Scene::with_own_provider("openai").await;
    scene.request_verdict().await.unwrap();
    scene.own.take_requests();
    scene.own.set_behaviours([Behaviour::Status(400, None, "Bad request", "invalid")]);
    assert_eq!(scene.request_failure().await.kind, JudgeFailureKind::Refused);
    assert_eq!(scene.own.request_count(), 1);
    scene.stop().await;
}

/// Some servers crash on a schema instead of rejecting it.
#[tokio::test]
async fn server_that_crashes_on_schema_gets_fallback_mode() {
    let scene = Scene::with_own_provider("openai_compatible").await;
    scene
        .own
        .set_behaviours([Behaviour::Status(500, None, "failed to parse grammar", ""), Behaviour::Succeeds]);
    assert!(scene.request_verdict().await.is_ok());
    assert_eq!(scene.own.take_output_modes(), ["schema", "tool"]);
    scene.stop().await;
}

#[tokio::test]
async fn server_that_ignores_schema_gets_fallback_mode() {
    let scene = Scene::with_own_provider("openai_compatible").await;
    // A verdict within prose is accepted.
    scene.own.set_behaviours([Behaviour::RepliesWith(format!(
        "<think>Hm {{}}</think>Sure!\n```json\n{}\n```",
        provider::VERDICT_JSON
    ))]);
    assert_eq!(scene.request_verdict().await.unwrap().verdict.score, 0.75);
    assert_eq!(scene.own.take_output_modes(), ["schema"]);
    // Prose without a verdict shows that the server ignored the schema; another mode may work.
    scene.own.set_behaviours([
        Behaviour::RepliesWith("The score is fairly high.".to_owned()),
        Behaviour::Succeeds,
    ]);
    let judged = scene.request_verdict().await.unwrap();
    assert_eq!((judged.verdict.score, judged.usage.prompt_tokens), (0.75, Some(2_000)));
    let requests = scene.own.take_requests();
    assert_eq!(
        requests.iter().map(provider::ReceivedRequest::output_mode).collect::<Vec<_>>(),
        ["schema", "tool"]
    );
    assert_eq!(
        requests[1].message_texts()[1..3],
        ["Output of the model: the invoice is paid.", "The score is fairly high."]
    );
    // A single such response does not change the cached mode.
    scene.own.set_behaviours([Behaviour::Succeeds]);
    assert!(scene.request_verdict().await.is_ok());
    assert_eq!(scene.own.take_output_modes(), ["schema"]);
    scene.stop().await;
}

/// The mode is cached per model and address.
#[tokio::test]
async fn output_mode_is_cached_per_model() {
    let scene = Scene::with_own_provider("openai").await;
    scene.own.set_behaviours([Behaviour::RejectsFields(RESPONSE_FORMAT)]);
    scene.request_verdict().await.unwrap();
    scene.store_credential("openai", json!({"judge_model_cheap": "another"})).await.ok();
    scene.own.take_requests();
    scene.own.set_behaviours([Behaviour::Succeeds]);
    scene.request_verdict().await.unwrap();
    assert_eq!(scene.own.take_output_modes(), ["schema"]);
    scene.stop().await;
}
