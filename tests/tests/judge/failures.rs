//! Failing providers: the classification of failures, and the time for which the circuit breaker stays open.

use std::time::{Duration, Instant};

use sea_orm::{EntityTrait, Set};

use super::*;

fn seconds(failure: &JudgeFailure) -> Option<u64> {
    failure.retry_after.map(|it| it.as_secs())
}

/// A failure that needs a change of settings. No request is sent for a short cool-down.
#[tokio::test]
async fn permanent_judge_failure_opens_circuit_breaker() {
    for (status, message, code) in [
        (401, "Incorrect API key provided", "invalid_api_key"),
        (402, "Insufficient Balance", ""),
        (403, "Country not supported", ""),
        (429, "You exceeded your current quota", "insufficient_quota"),
        (400, "Your credit balance is too low", ""),
        (404, "The model `gpt-4o` does not exist", "model_not_found"),
        (307, "", ""),
    ] {
        let scene = Scene::own("openai").await;
        scene.own.turn([Mood::Status(status, None, message, code)]);
        let failure = scene.fails().await;
        assert_eq!((failure.kind, scene.own.count()), (Kind::Broken, 1), "{status} {message}: {failure}");
        assert!(failure.message.contains("PUT /v1/provider-credentials/openai"), "{failure}");
        assert!(failure.message.contains(message), "{failure}");
        // Other callers get the same failure without a request.
        let again = scene.fails().await;
        assert_eq!((again.kind, again.message.as_str()), (Kind::Broken, failure.message.as_str()));
        assert_eq!(scene.own.count(), 1);
        scene.own.turn([Mood::Well]);
        scene.app.advance(60);
        assert!(scene.ask().await.is_ok());
        scene.stop().await;
    }
}

/// A changed credential is used immediately; a missing model does not affect other models.
#[tokio::test]
async fn changed_credential_is_tried_immediately() {
    let scene = Scene::own("openai").await;
    scene.own.turn([Mood::Status(401, None, "no", "")]);
    assert_eq!(scene.fails().await.kind, Kind::Broken);
    scene.own.turn([Mood::Well]);
    scene.app.advance(1);
    scene.store_credential("openai", json!({"api_key": "sk-another"})).await.ok();
    assert!(scene.ask().await.is_ok());
    assert_eq!(scene.own.asked().pop().unwrap().key, "sk-another");

    let changes = json!({"api_key": "sk-another", "judge_model_premium": "other"});
    scene.store_credential("openai", changes).await.ok();
    scene.own.turn([Mood::Status(404, None, "The model does not exist", "")]);
    assert_eq!(scene.fails().await.kind, Kind::Broken);
    scene.own.turn([Mood::Well]);
    let other = scene.choose(Plan::Team, PreferredProvider::OpenAi, ModelTier::Premium).await.unwrap();
    assert!(scene.app.app.judge.ask(&other, &question()).await.is_ok());
    assert_eq!(scene.fails().await.kind, Kind::Broken);
    scene.stop().await;
}

#[tokio::test]
async fn rejected_content_fails_only_its_evaluation() {
    for (status, message, code) in [
        (400, "The prompt was filtered", "content_filter"),
        (403, "Your input was flagged by moderation", ""),
        (413, "", ""),
    ] {
        let scene = Scene::own("openai").await;
        scene.own.turn([Mood::Status(status, None, message, code)]);
        assert_eq!((scene.fails().await.kind, scene.own.count()), (Kind::Refused, 1), "{status} {message}");
        scene.own.turn([Mood::Well]);
        assert!(scene.ask().await.is_ok(), "others are judged");
        scene.stop().await;
    }
    // Too long for the context, with and without the space for the response.
    let scene = Scene::own("openai").await;
    scene.own.turn([Mood::Status(400, None, "maximum context length is 4096 tokens", "")]);
    assert_eq!((scene.fails().await.kind, scene.own.count()), (Kind::Refused, 2));
    scene.own.turn([Mood::Body(json!({"choices": [{"message": {"refusal": "I won't"}}]}).to_string())]);
    assert_eq!(scene.fails().await.kind, Kind::Refused);
    scene.stop().await;
}

/// `Retry-After` applies to all callers of the credential, and to no other credential.
#[tokio::test]
async fn too_many_requests_for_ever() {
    let scene = Scene::own("openai").await;
    scene.own.turn([Mood::Status(429, Some("30"), "Rate limit reached", "rate_limit_exceeded")]);
    let failure = scene.fails().await;
    assert_eq!((failure.kind, seconds(&failure), scene.own.count()), (Kind::Later, Some(30), 1));
    let others = scene.fails().await;
    assert_eq!((others.kind, seconds(&others), scene.own.count()), (Kind::Waiting, Some(30), 1));
    let platform = scene.choose(Plan::Pro, PreferredProvider::OpenAi, ModelTier::Cheap).await.unwrap();
    assert!(scene.app.app.judge.ask(&platform, &question()).await.is_ok());
    for _ in 0..3 {
        scene.app.advance(30);
        let failure = scene.fails().await;
        assert_eq!((failure.kind, seconds(&failure)), (Kind::Later, Some(30)));
    }
    assert_eq!(scene.own.count(), 4);
    scene.stop().await;
}

#[tokio::test]
async fn transient_judge_failure_is_retried_immediately() {
    for broken in [
        Mood::Status(500, None, "oops", ""),
        Mood::Body(json!({"error": {"message": "upstream went away"}}).to_string()),
        Mood::Body(json!({"error": {"message": "overloaded", "code": 503}}).to_string()),
    ] {
        let scene = Scene::own("openai").await;
        scene.own.turn([broken.clone(), Mood::Well]);
        assert!(scene.ask().await.is_ok(), "{broken:?}");
        assert_eq!(scene.own.count(), 2);
        scene.stop().await;
    }
}

/// A few failures are tolerated; then single probes follow after growing pauses, and other callers wait.
#[tokio::test]
async fn unreachable_judge_opens_circuit_breaker() {
    let scene = Scene::own("openai").await;
    scene.own.turn([Mood::Status(503, None, "away", "")]);
    for _ in 0..2 {
        let failure = scene.fails().await;
        assert_eq!((failure.kind, failure.retry_after), (Kind::Later, None));
    }
    for pause in [1, 2, 4, 8] {
        let failure = scene.fails().await;
        assert_eq!((failure.kind, seconds(&failure)), (Kind::Later, Some(pause)));
        let before = scene.own.count();
        assert_eq!(scene.fails().await.kind, Kind::Waiting);
        assert_eq!(scene.own.count(), before);
        scene.app.advance(i64::try_from(pause).unwrap());
    }
    scene.own.turn([Mood::Well]);
    assert!(scene.ask().await.is_ok() && scene.ask().await.is_ok());
    scene.stop().await;
}

#[tokio::test]
async fn silence_and_drops_are_bounded_in_time() {
    for mood in [Mood::Stalls, Mood::Drips] {
        let scene = Scene::own_with("openai", &["--judge-timeout", "1"]).await;
        scene.own.turn([mood.clone()]);
        let began = Instant::now();
        let failure = scene.fails().await;
        assert_eq!(failure.kind, Kind::Later, "{mood:?}");
        assert!(failure.message.contains("no complete response in time"), "{failure}");
        assert!(began.elapsed() < Duration::from_secs(10), "{mood:?} {:?}", began.elapsed());
        // The platform's provider uses another code path with the same limits.
        scene.platform.turn([mood.clone()]);
        let platform = scene.choose(Plan::Pro, PreferredProvider::OpenAi, ModelTier::Cheap).await.unwrap();
        let failure = scene.app.app.judge.ask(&platform, &question()).await.unwrap_err();
        assert_eq!(failure.kind, Kind::Later, "{mood:?}");
        assert!(failure.message.contains("no complete response in time"), "{failure}");
        scene.stop().await;
    }
}

#[tokio::test]
async fn closed_port_is_a_temporary_failure() {
    let scene = Scene::own("openai").await;
    let address = scene.own.address;
    let Scene { app, platform, own } = scene;
    drop(own);
    let scene = Scene { app, platform, own: Provider::start().await };
    let failure = scene.fails().await;
    // Another process may use the port by now, with another protocol.
    assert!(matches!(failure.kind, Kind::Later | Kind::Broken), "{address} {failure}");
    scene.stop().await;
}

/// A private address is never connected to, even if the database contains it.
#[tokio::test]
async fn addresses_that_lead_inside() {
    let scene = Scene::on(On::Sqlite, Plan::Team, &[]).await;
    let refused = json!({"base_url": scene.platform.url()});
    scene.store_credential("openai_compatible", refused).await.is(422, "validation_failed");
    scene.store_credential("openai", json!({})).await.ok();
    let row = entities::provider_credential::ActiveModel {
        tenant_id: Set(scene.app.tenant),
        provider: Set("openai".to_owned()),
        base_url: Set(Some(format!("http://127.0.0.1:{}/x", scene.platform.address.port()))),
        ..Default::default()
    };
    entities::provider_credential::Entity::update(row).exec(&scene.app.app.db.write).await.unwrap();
    let txn = scene.app.app.db.begin().await.unwrap();
    scene.app.app.commit(txn).await.unwrap();
    let failure = scene.fails().await;
    assert_eq!(failure.kind, Kind::Broken, "{failure}");
    assert_eq!((scene.platform.count(), scene.own.count()), (0, 0));
    scene.stop().await;
}
