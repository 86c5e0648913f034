//! Failing providers: embedding waits, retries are bounded, and embedding continues after the recovery.

use api::search::DIMENSIONS;

use super::*;
use crate::provider::Mood;

/// Returns the seconds until the next waiting job is due.
async fn next(scene: &Scene) -> i64 {
    let now = server::clock::Clock::now(scene.app.clock.as_ref());
    (scene.waiting().await[0].run_at - now) / 1_000_000
}

/// Checks that spans wait during a failure with these pauses, and get their vectors afterwards.
async fn waits_and_goes_on(on: On, mood: Mood, pauses: &[i64]) {
    let scene = Scene::own(on).await;
    scene.own.turn(mood.clone());
    scene.say("one").await;
    scene.work().await;
    for pause in pauses {
        assert_eq!(next(&scene).await, *pause, "{mood:?}");
        assert_eq!(scene.own.asked().len(), 1, "{mood:?}");
        // The job does not run early, and new spans wait too.
        scene.say("more").await;
        scene.app.advance(pause - 1);
        scene.app.drain().await;
        assert_eq!(scene.own.asked(), [], "{mood:?}");
        scene.app.advance(1);
        scene.app.drain().await;
    }
    assert_eq!(scene.vectors().await.len(), 0, "{mood:?}");
    assert_eq!(scene.waiting().await.len(), 1, "{mood:?}: what waits is one job");
    scene.own.turn(Mood::Well);
    scene.app.advance(600);
    scene.app.drain().await;
    assert_eq!(scene.vectors().await.len(), 1 + pauses.len(), "{mood:?}");
    assert_eq!(scene.waiting().await, [], "{mood:?}");
    scene.stop().await;
}

on_both! {
    async fn embedding_waits_after_server_error(on: On) {
        waits_and_goes_on(on, Mood::Status(500, None), &[1, 2, 4, 8]).await;
    }

    async fn embedding_waits_after_rate_limit(on: On) {
        waits_and_goes_on(on, Mood::Status(429, Some("30")), &[30, 30]).await;
    }

    async fn wrong_number_of_vectors_is_a_failure(on: On) {
        waits_and_goes_on(on, Mood::Body(json!({"data": []})), &[1, 2]).await;
    }

    async fn vectors_with_too_many_dimensions_are_a_failure(on: On) {
        let data = json!([{"index": 0, "embedding": vec![0.5; DIMENSIONS + 1]}]);
        waits_and_goes_on(on, Mood::Body(json!({"data": data})), &[1, 2]).await;
    }

    async fn no_numbers_at_all(on: On) {
        // 0000c07f is a quiet NaN.
        waits_and_goes_on(on, Mood::Body(json!({"data": [{"index": 0, "embedding": "AADAfw=="}]})), &[1]).await;
        waits_and_goes_on(on, Mood::Body(json!({"data": [{"index": 0, "embedding": [0, 0, 0]}]})), &[1]).await;
        waits_and_goes_on(on, Mood::Body(json!("nonsense")), &[1]).await;
    }

    async fn endless_embedding_response_is_a_failure(on: On) {
        waits_and_goes_on(on, Mood::Endless, &[1]).await;
    }

    async fn rejected_key_pauses_embedding(on: On) {
        waits_and_goes_on(on, Mood::Status(401, None), &[600]).await;
    }

    async fn embedding_redirect_is_not_followed(on: On) {
        waits_and_goes_on(on, Mood::Status(307, None), &[600]).await;
    }

    async fn provider_that_rejects_every_text_is_misconfigured(on: On) {
        let scene = Scene::own(on).await;
        scene.own.turn(Mood::Status(400, None));
        scene.say("one").await;
        scene.work().await;
        assert_eq!(next(&scene).await, 600);
        assert_eq!(scene.own.asked().len(), 2, "the text, and one that nobody can refuse");
        scene.stop().await;
    }

    /// A new credential is used immediately, even while the previous one is rejected for long.
    async fn changed_credential_resumes_embedding_immediately(on: On) {
        let scene = Scene::own(on).await;
        scene.own.turn(Mood::Status(401, None));
        scene.say("one").await;
        scene.work().await;
        assert_eq!(next(&scene).await, 600);
        scene.own.turn(Mood::Well);
        scene.store_credential(json!({"api_key": "sk-another"})).await.ok();
        scene.work().await;
        assert_eq!(scene.vectors().await.len(), 1);
        assert_eq!(scene.own.asked().last().unwrap().key, "sk-another");
        // The job that waited has nothing left to do.
        scene.app.advance(600);
        scene.app.drain().await;
        assert_eq!((scene.own.asked(), scene.waiting().await), (vec![], vec![]));
        scene.stop().await;
    }

    /// One rejected text does not affect the others.
    async fn one_rejected_text_does_not_affect_others(on: On) {
        let scene = Scene::own(on).await;
        scene.own.turn(Mood::Refusing("forbidden"));
        for n in 0..20 {
            scene.say(if n == 7 { "forbidden" } else { "fine" }).await;
        }
        scene.work().await;
        assert_eq!(scene.vectors().await.len(), 19);
        assert_eq!(scene.waiting().await, []);
        assert!(scene.own.asked().len() < 15);
        scene.stop().await;
    }

    async fn texts_that_are_too_long_are_shortened(on: On) {
        let scene = Scene::own(on).await;
        scene.own.turn(Mood::Short(600));
        scene.say("short").await;
        scene.say(&"long ".repeat(1_000)).await;
        scene.work().await;
        assert_eq!(scene.vectors().await.len(), 2);
        scene.stop().await;
    }

    async fn provider_with_small_batches_gets_smaller_requests(on: On) {
        let scene = Scene::own(on).await;
        scene.own.turn(Mood::Few(32));
        for n in 0..200 {
            scene.say(&n.to_string()).await;
        }
        scene.work().await;
        assert_eq!(scene.vectors().await.len(), 200);
        let sizes: Vec<usize> = scene.own.asked().iter().map(|it| it.texts.len()).collect();
        assert_eq!(sizes, [64, 32, 32, 32, 32, 32, 32, 8]);
        scene.stop().await;
    }

    /// A tenant with a failing provider does not delay other tenants.
    async fn failing_provider_does_not_delay_other_tenants(on: On) {
        let scene = Scene::own(on).await;
        let (_, other) = scene.app.other_tenant(Plan::Pro).await;
        scene.own.turn(Mood::Status(503, None));
        scene.say("mine").await;
        let span = json!({"name": "chat", "input": "theirs"});
        other.post("/v1/ingest", &json!({"spans": [span]})).await.ok();
        scene.work().await;
        assert_eq!(scene.vectors().await, ["platform-model"]);
        scene.stop().await;
    }
}
