//! The structured-output mode: the most reliable one that the server and the model support.

use super::*;

const RESPONSE_FORMAT: &[&str] = &["response_format"];

#[tokio::test]
async fn openai_is_asked_by_schema() {
    let scene = Scene::own("openai").await;
    let judged = scene.ask().await.unwrap();
    assert_eq!((judged.verdict.score, judged.verdict.reasoning.as_str()), (0.75, "It answers the question."));
    assert_eq!((judged.usage.model.as_deref(), judged.usage.prompt_tokens), (Some("gpt-4o"), Some(1_000)));
    // 1,000 tokens at 2.5 and 100 at 10 dollars per million.
    assert_eq!((judged.usage.completion_tokens, judged.usage.cost), (Some(100), Some(3_500_000_000)));
    let asked = scene.own.asked().remove(0);
    assert_eq!((asked.path.as_str(), asked.key.as_str()), ("/v1/chat/completions", KEY));
    let format = &asked.body["response_format"]["json_schema"];
    assert_eq!((&format["strict"], &format["schema"]), (&json!(true), &question().schema));
    assert_eq!(
        (&asked.body["temperature"], &asked.body["max_completion_tokens"]),
        (&json!(0), &json!(4_096))
    );
    assert_eq!(asked.said(), [question().system, question().user]);
    scene.stop().await;
}

#[tokio::test]
async fn anthropic_is_asked_by_schema_then_by_tool() {
    let scene = Scene::own("anthropic").await;
    scene.store_credential("anthropic", json!({"judge_model_cheap": "claude-haiku-4-5"})).await.ok();
    let judged = scene.ask().await.unwrap();
    // 1,000 tokens at 1 and 100 at 5 dollars per million.
    assert_eq!((judged.verdict.score, judged.usage.cost), (0.75, Some(1_500_000_000)));
    let asked = scene.own.asked().remove(0);
    assert_eq!((asked.path.as_str(), asked.key.as_str(), asked.rung()), ("/v1/messages", KEY, "schema"));
    assert_eq!((&asked.body["system"], asked.said()), (&json!(question().system), vec!["What is judged."]));
    scene.own.turn([Mood::Without(&["output_config", "temperature"])]);
    assert_eq!(scene.ask().await.unwrap().verdict.score, 0.75);
    // After the rejection of both, the request omits both; the next request omits them at once.
    assert_eq!(scene.own.rungs(), ["schema", "tool", "tool"]);
    assert!(scene.ask().await.is_ok());
    let asked = scene.own.asked();
    assert_eq!((asked.len(), asked[0].rung(), asked[0].body.get("temperature")), (1, "tool", None));
    scene.stop().await;
}

/// Checks that a rejected feature is omitted, and that this is cached.
async fn goes_down(mood: Mood, first: &[&str], then: &str) {
    let scene = Scene::own("openai").await;
    scene.own.turn([mood.clone()]);
    assert_eq!(scene.ask().await.unwrap().verdict.score, 0.75, "{mood:?}");
    assert_eq!(scene.own.rungs(), first, "{mood:?}");
    assert!(scene.ask().await.is_ok());
    assert_eq!(scene.own.rungs(), [then], "{mood:?}");
    scene.stop().await;
}

#[tokio::test]
async fn rejected_request_feature_is_omitted() {
    goes_down(Mood::Without(RESPONSE_FORMAT), &["schema", "tool"], "tool").await;
    goes_down(Mood::Without(&["response_format", "tools"]), &["schema", "tool", "json", "text"], "text")
        .await;
    goes_down(Mood::Without(&["temperature"]), &["schema", "schema"], "schema").await;
    let both = &["max_completion_tokens", "max_tokens"];
    goes_down(Mood::Without(both), &["schema"; 3], "schema").await;
}

#[tokio::test]
async fn refusals_that_do_not_say_of_what() {
    goes_down(Mood::Mutely(RESPONSE_FORMAT), &["schema", "tool"], "tool").await;
    goes_down(Mood::Mutely(&["temperature"]), &["schema", "tool", "json", "text", "text"], "text").await;
    // A mode that has worked before is kept; the failure then concerns the request.
    let scene = Scene::own("openai").await;
    scene.ask().await.unwrap();
    scene.own.asked();
    scene.own.turn([Mood::Status(400, None, "Bad request", "invalid")]);
    assert_eq!(scene.fails().await.kind, Kind::Refused);
    assert_eq!(scene.own.count(), 1);
    scene.stop().await;
}

/// Some servers crash on a schema instead of rejecting it.
#[tokio::test]
async fn server_that_crashes_on_schema_gets_fallback_mode() {
    let scene = Scene::own("openai_compatible").await;
    scene.own.turn([Mood::Status(500, None, "failed to parse grammar", ""), Mood::Well]);
    assert!(scene.ask().await.is_ok());
    assert_eq!(scene.own.rungs(), ["schema", "tool"]);
    scene.stop().await;
}

#[tokio::test]
async fn server_that_ignores_schema_gets_fallback_mode() {
    let scene = Scene::own("openai_compatible").await;
    // A verdict within prose is accepted.
    scene.own.turn([Mood::Says(format!("<think>Hm {{}}</think>Sure!\n```json\n{}\n```", provider::VERDICT))]);
    assert_eq!(scene.ask().await.unwrap().verdict.score, 0.75);
    assert_eq!(scene.own.rungs(), ["schema"]);
    // Prose without a verdict shows that the server ignored the schema; another mode may work.
    scene.own.turn([Mood::Says("I would say it is rather good.".to_owned()), Mood::Well]);
    let judged = scene.ask().await.unwrap();
    assert_eq!((judged.verdict.score, judged.usage.prompt_tokens), (0.75, Some(2_000)));
    let asked = scene.own.asked();
    assert_eq!(asked.iter().map(provider::Asked::rung).collect::<Vec<_>>(), ["schema", "tool"]);
    assert_eq!(asked[1].said()[1..3], ["What is judged.", "I would say it is rather good."]);
    // A single such response does not change the cached mode.
    scene.own.turn([Mood::Well]);
    assert!(scene.ask().await.is_ok());
    assert_eq!(scene.own.rungs(), ["schema"]);
    scene.stop().await;
}

/// The mode is cached per model and address.
#[tokio::test]
async fn output_mode_is_cached_per_model() {
    let scene = Scene::own("openai").await;
    scene.own.turn([Mood::Without(RESPONSE_FORMAT)]);
    scene.ask().await.unwrap();
    scene.store_credential("openai", json!({"judge_model_cheap": "another"})).await.ok();
    scene.own.asked();
    scene.own.turn([Mood::Well]);
    scene.ask().await.unwrap();
    assert_eq!(scene.own.rungs(), ["schema"]);
    scene.stop().await;
}
