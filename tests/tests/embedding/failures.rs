//! Failing providers: embedding waits, retries are bounded, and embedding continues after the recovery.

use api::search::DIMENSIONS;

use super::*;
use crate::provider::Behaviour;

/// Returns the seconds until the next waiting job is due.
async fn next(scene: &Scene) -> i64 {
    let now = server::clock::Clock::now(scene.app.clock.as_ref());
    (scene.waiting_jobs().await[0].run_at - now) / 1_000_000
}

/// Checks that spans wait during a failure with these pauses, and get their vectors afterwards.
async fn check_waits_and_resumes(on: On, behaviour: Behaviour, pauses: &[i64]) {
    let scene = Scene::with_own_provider(on).await;
    scene.own.set_behaviour(behaviour.clone());
    scene.store_trace("one").await;
    scene.run_due_jobs().await;
    for pause in pauses {
        assert_eq!(next(&scene).await, *pause, "{behaviour:?}");
        assert_eq!(scene.own.take_requests().len(), 1, "{behaviour:?}");
        // The job does not run early, and new spans wait too.
        scene.store_trace("more").await;
        scene.app.advance(pause - 1);
        scene.app.drain().await;
        assert_eq!(scene.own.take_requests(), [], "{behaviour:?}");
        scene.app.advance(1);
        scene.app.drain().await;
    }
    assert_eq!(scene.vector_models().await.len(), 0, "{behaviour:?}");
    assert_eq!(scene.waiting_jobs().await.len(), 1, "{behaviour:?}: one job waits");
    scene.own.set_behaviour(Behaviour::Succeeds);
    scene.app.advance(600);
    scene.app.drain().await;
    assert_eq!(scene.vector_models().await.len(), 1 + pauses.len(), "{behaviour:?}");
    assert_eq!(scene.waiting_jobs().await, [], "{behaviour:?}");
    scene.stop().await;
}

on_both! {
    async fn embedding_waits_after_server_error(on: On) {
        check_waits_and_resumes(on, Behaviour::Status(500, None), &[1, 2, 4, 8]).await;
    }

    async fn embedding_waits_after_rate_limit(on: On) {
        check_waits_and_resumes(on, Behaviour::Status(429, Some("30")), &[30, 30]).await;
    }

    async fn wrong_number_of_vectors_is_a_failure(on: On) {
        check_waits_and_resumes(on, Behaviour::Body(json!({"data": []})), &[1, 2]).await;
    }

    async fn vectors_with_too_many_dimensions_are_a_failure(on: On) {
        let data = json!([{"index": 0, "embedding": vec![0.5; DIMENSIONS + 1]}]);
        check_waits_and_resumes(on, Behaviour::Body(json!({"data": data})), &[1, 2]).await;
    }

    async fn vectors_without_numbers_are_a_failure(on: On) {
        // The bytes 0000c07f are a quiet NaN.
        check_waits_and_resumes(on, Behaviour::Body(json!({"data": [{"index": 0, "embedding": "AADAfw=="}]})), &[1]).await;
        check_waits_and_resumes(on, Behaviour::Body(json!({"data": [{"index": 0, "embedding": [0, 0, 0]}]})), &[1]).await;
        check_waits_and_resumes(on, Behaviour::Body(json!("nonsense")), &[1]).await;
    }

    async fn endless_embedding_response_is_a_failure(on: On) {
        check_waits_and_resumes(on, Behaviour::SendsEndlessly, &[1]).await;
    }

    async fn rejected_key_pauses_embedding(on: On) {
        check_waits_and_resumes(on, Behaviour::Status(401, None), &[600]).await;
    }

    async fn embedding_redirect_is_not_followed(on: On) {
        check_waits_and_resumes(on, Behaviour::Status(307, None), &[600]).await;
    }

    async fn provider_that_rejects_every_text_is_misconfigured(on: On) {
        let scene = Scene::with_own_provider(on).await;
        scene.own.set_behaviour(Behaviour::Status(400, None));
        scene.store_trace("one").await;
        scene.run_due_jobs().await;
        assert_eq!(next(&scene).await, 600);
        assert_eq!(scene.own.take_requests().len(), 2, "the text, and one that any provider accepts");
        scene.stop().await;
    }

    /// A new credential is used immediately, although the jobs of the rejected one are postponed.
    async fn changed_credential_resumes_embedding_immediately(on: On) {
        let scene = Scene::with_own_provider(on).await;
        scene.own.set_behaviour(Behaviour::Status(401, None));
        scene.store_trace("one").await;
        scene.run_due_jobs().await;
        assert_eq!(next(&scene).await, 600);
        scene.own.set_behaviour(Behaviour::Succeeds);
        scene.store_credential(json!({"api_key": "sk-another"})).await.ok();
        scene.run_due_jobs().await;
        assert_eq!(scene.vector_models().await.len(), 1);
        assert_eq!(scene.own.take_requests().last().unwrap().key, "sk-another");
        // The job that waited has nothing left to do.
        scene.app.advance(600);
        scene.app.drain().await;
        assert_eq!((scene.own.take_requests(), scene.waiting_jobs().await), (vec![], vec![]));
        scene.stop().await;
    }

    /// One rejected text does not affect the others.
    async fn one_rejected_text_does_not_affect_others(on: On) {
        let scene = Scene::with_own_provider(on).await;
        scene.own.set_behaviour(Behaviour::RejectsWord("forbidden"));
        for n in 0..20 {
            scene.store_trace(if n == 7 { "forbidden" } else { "fine" }).await;
        }
        scene.run_due_jobs().await;
        assert_eq!(scene.vector_models().await.len(), 19);
        assert_eq!(scene.waiting_jobs().await, []);
        assert!(scene.own.take_requests().len() < 15);
        scene.stop().await;
    }

    async fn too_long_text_is_shortened_and_embedded(on: On) {
        let scene = Scene::with_own_provider(on).await;
        scene.own.set_behaviour(Behaviour::LimitsTextLength(600));
        scene.store_trace("short").await;
        scene.store_trace(&"long ".repeat(1_000)).await;
        scene.run_due_jobs().await;
        assert_eq!(scene.vector_models().await.len(), 2);
        scene.stop().await;
    }

    async fn provider_with_small_batches_gets_smaller_requests(on: On) {
        let scene = Scene::with_own_provider(on).await;
        scene.own.set_behaviour(Behaviour::LimitsBatch(32));
        for n in 0..200 {
            scene.store_trace(&n.to_string()).await;
        }
        scene.run_due_jobs().await;
        assert_eq!(scene.vector_models().await.len(), 200);
        let sizes: Vec<usize> = scene.own.take_requests().iter().map(|it| it.texts.len()).collect();
        assert_eq!(sizes, [64, 32, 32, 32, 32, 32, 32, 8]);
        scene.stop().await;
    }

    /// A tenant with a failing provider does not delay other tenants.
    async fn failing_provider_does_not_delay_other_tenants(on: On) {
        let scene = Scene::with_own_provider(on).await;
        let (_, other) = scene.app.other_tenant(Plan::Pro).await;
        scene.own.set_behaviour(Behaviour::Status(503, None));
        scene.store_trace("mine").await;
        let span = json!({"name": "chat", "input": "theirs"});
        other.post("/v1/ingest", &json!({"spans": [span]})).await.ok();
        scene.run_due_jobs().await;
        assert_eq!(scene.vector_models().await, ["platform-model"]);
        scene.stop().await;
    }
}
