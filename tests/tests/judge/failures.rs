//! Failing providers: the classification of failures, and the time for which the circuit breaker stays open.

use sea_orm::{EntityTrait, Set};

use tests::hang::must_end;

use super::*;

fn seconds(failure: &JudgeFailure) -> Option<u64> {
    failure.retry_after.map(|it| it.as_secs())
}

/// The failure persists until someone changes the settings. No request is sent during a short cool-down.
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
        let scene = Scene::with_own_provider("openai").await;
        scene.own.set_behaviours([Behaviour::Status(status, None, message, code)]);
        let failure = scene.request_failure().await;
        assert_eq!(
            (failure.kind, scene.own.request_count()),
            (JudgeFailureKind::Broken, 1),
            "{status} {message}: {failure}"
        );
        assert!(failure.message.contains("PUT /v1/provider-credentials/openai"), "{failure}");
        assert!(failure.message.contains(message), "{failure}");
        // Other callers get the same failure without a request.
        let again = scene.request_failure().await;
        assert_eq!(
            (again.kind, again.message.as_str()),
            (JudgeFailureKind::Broken, failure.message.as_str())
        );
        assert_eq!(scene.own.request_count(), 1);
        scene.own.set_behaviours([Behaviour::Succeeds]);
        scene.app.advance(60);
        assert!(scene.request_verdict().await.is_ok());
        scene.stop().await;
    }
}

/// A changed credential is used immediately; a missing model does not affect other models.
#[tokio::test]
async fn changed_credential_is_tried_immediately() {
    let scene = Scene::with_own_provider("openai").await;
    scene.own.set_behaviours([Behaviour::Status(401, None, "no", "")]);
    assert_eq!(scene.request_failure().await.kind, JudgeFailureKind::Broken);
    scene.own.set_behaviours([Behaviour::Succeeds]);
    scene.app.advance(1);
    scene.store_credential("openai", json!({"api_key": "sk-another"})).await.ok();
    assert!(scene.request_verdict().await.is_ok());
    assert_eq!(scene.own.take_requests().pop().unwrap().key, "sk-another");

    let changes = json!({"api_key": "sk-another", "judge_model_premium": "other"});
    scene.store_credential("openai", changes).await.ok();
    scene.own.set_behaviours([Behaviour::Status(404, None, "The model does not exist", "")]);
    assert_eq!(scene.request_failure().await.kind, JudgeFailureKind::Broken);
    scene.own.set_behaviours([Behaviour::Succeeds]);
    let other = scene.select_judge(Plan::Team, PreferredProvider::OpenAi, ModelTier::Premium).await.unwrap();
    assert!(scene.app.app.judge.ask(&other, &judge_request()).await.is_ok());
    assert_eq!(scene.request_failure().await.kind, JudgeFailureKind::Broken);
    scene.stop().await;
}

#[tokio::test]
async fn rejected_content_fails_only_its_evaluation() {
    for (status, message, code) in [
        (400, "The prompt was filtered", "content_filter"),
        (403, "Your input was flagged by moderation", ""),
        (413, "", ""),
    ] {
        let scene = Scene::with_own_provider("openai").await;
        scene.own.set_behaviours([Behaviour::Status(status, None, message, code)]);
        assert_eq!(
            (scene.request_failure().await.kind, scene.own.request_count()),
            (JudgeFailureKind::Refused, 1),
            "{status} {message}"
        );
        scene.own.set_behaviours([Behaviour::Succeeds]);
        assert!(scene.request_verdict().await.is_ok(), "other evaluations fail too");
        scene.stop().await;
    }
    // The prompt is too long for the context: alone, or together with the space for the response.
    let scene = Scene::with_own_provider("openai").await;
    scene.own.set_behaviours([Behaviour::Status(400, None, "maximum context length is 4096 tokens", "")]);
    assert_eq!(
        (scene.request_failure().await.kind, scene.own.request_count()),
        (JudgeFailureKind::Refused, 2)
    );
    scene.own.set_behaviours([Behaviour::Body(
        json!({"choices": [{"message": {"refusal": "I won't"}}]}).to_string(),
    )]);
    assert_eq!(scene.request_failure().await.kind, JudgeFailureKind::Refused);
    scene.stop().await;
}

/// `Retry-After` applies to all callers of the credential, and to no other credential.
#[tokio::test]
async fn judge_rate_limit_applies_to_all_callers_of_a_credential() {
    let scene = Scene::with_own_provider("openai").await;
    scene.own.set_behaviours([Behaviour::Status(
        429,
        Some("30"),
        "Rate limit reached",
        "rate_limit_exceeded",
    )]);
    let failure = scene.request_failure().await;
    assert_eq!(
        (failure.kind, seconds(&failure), scene.own.request_count()),
        (JudgeFailureKind::Later, Some(30), 1)
    );
    let others = scene.request_failure().await;
    assert_eq!(
        (others.kind, seconds(&others), scene.own.request_count()),
        (JudgeFailureKind::Waiting, Some(30), 1)
    );
    let platform = scene.select_judge(Plan::Pro, PreferredProvider::OpenAi, ModelTier::Cheap).await.unwrap();
    assert!(scene.app.app.judge.ask(&platform, &judge_request()).await.is_ok());
    for _ in 0..3 {
        scene.app.advance(30);
        let failure = scene.request_failure().await;
        assert_eq!((failure.kind, seconds(&failure)), (JudgeFailureKind::Later, Some(30)));
    }
    assert_eq!(scene.own.request_count(), 4);
    scene.stop().await;
}

#[tokio::test]
async fn transient_judge_failure_is_retried_immediately() {
    for broken in [
        Behaviour::Status(500, None, "oops", ""),
        Behaviour::Body(json!({"error": {"message": "upstream went away"}}).to_string()),
        Behaviour::Body(json!({"error": {"message": "overloaded", "code": 503}}).to_string()),
    ] {
        let scene = Scene::with_own_provider("openai").await;
        scene.own.set_behaviours([broken.clone(), Behaviour::Succeeds]);
        assert!(scene.request_verdict().await.is_ok(), "{broken:?}");
        assert_eq!(scene.own.request_count(), 2);
        scene.stop().await;
    }
}

/// A few failures are tolerated; then single probes follow after growing pauses, and other callers wait.
#[tokio::test]
async fn unreachable_judge_opens_circuit_breaker() {
    let scene = Scene::with_own_provider("openai").await;
    scene.own.set_behaviours([Behaviour::Status(503, None, "away", "")]);
    for _ in 0..2 {
        let failure = scene.request_failure().await;
        assert_eq!((failure.kind, failure.retry_after), (JudgeFailureKind::Later, None));
    }
    for pause in [1, 2, 4, 8] {
        let failure = scene.request_failure().await;
        assert_eq!((failure.kind, seconds(&failure)), (JudgeFailureKind::Later, Some(pause)));
        let before = scene.own.request_count();
        assert_eq!(scene.request_failure().await.kind, JudgeFailureKind::Waiting);
        assert_eq!(scene.own.request_count(), before);
        scene.app.advance(i64::try_from(pause).unwrap());
    }
    scene.own.set_behaviours([Behaviour::Succeeds]);
    assert!(scene.request_verdict().await.is_ok() && scene.request_verdict().await.is_ok());
    scene.stop().await;
}

#[tokio::test]
async fn silent_or_slow_judge_is_timed_out() {
    for behaviour in [Behaviour::Stalls, Behaviour::SendsSlowly] {
        let scene = Scene::with_own_provider_and_flags("openai", &["--judge-timeout", "1"]).await;
        scene.own.set_behaviours([behaviour.clone()]);
        let failure = must_end("the judge times out", scene.request_failure()).await;
        assert_eq!(failure.kind, JudgeFailureKind::Later, "{behaviour:?}");
        assert!(failure.message.contains("no complete response in time"), "{failure}");
        // The platform's provider uses another code path with the same limits.
        scene.platform.set_behaviours([behaviour.clone()]);
        let platform =
            scene.select_judge(Plan::Pro, PreferredProvider::OpenAi, ModelTier::Cheap).await.unwrap();
        let failure = scene.app.app.judge.ask(&platform, &judge_request()).await.unwrap_err();
        assert_eq!(failure.kind, JudgeFailureKind::Later, "{behaviour:?}");
        assert!(failure.message.contains("no complete response in time"), "{failure}");
        scene.stop().await;
    }
}

#[tokio::test]
async fn closed_port_is_a_temporary_failure() {
    let scene = Scene::with_own_provider("openai").await;
    let address = scene.own.address;
    let Scene { app, platform, own } = scene;
    drop(own);
    let scene = Scene { app, platform, own: Provider::start().await };
    let failure = scene.request_failure().await;
    // Another process may use the port by now, with another protocol.
    assert!(
        matches!(failure.kind, JudgeFailureKind::Later | JudgeFailureKind::Broken),
        "{address} {failure}"
    );
    scene.stop().await;
}

/// A private address is never connected to, even if the database contains it.
#[tokio::test]
async fn private_judge_address_is_never_connected() {
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
    let failure = scene.request_failure().await;
    assert_eq!(failure.kind, JudgeFailureKind::Broken, "{failure}");
    assert_eq!((scene.platform.request_count(), scene.own.request_count()), (0, 0));
    scene.stop().await;
}
