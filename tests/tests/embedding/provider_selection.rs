//! The choice of the embedding key on each plan.

use super::*;

on_both! {
    async fn embedding_provider_follows_from_plan(on: On) {
        let scene = Scene::on(on, Plan::Starter).await;
        // Without a credential, only Pro uses the platform's provider.
        for (plan, platform) in
            [(Plan::Starter, 0), (Plan::Pro, 1), (Plan::Team, 0), (Plan::Business, 0), (Plan::Enterprise, 0)]
        {
            scene.app.set_plan(plan).await;
            scene.store_trace("hello").await;
            scene.run_due_jobs().await;
            let requests = scene.platform.take_requests();
            assert_eq!(requests.len(), platform, "{plan}");
            assert!(requests.iter().all(|it| it.key == PLATFORM_KEY && it.model == "platform-model"), "{requests:?}");
        }
        assert_eq!(scene.vector_models().await, ["platform-model"]);
        assert_eq!(scene.own.take_requests(), []);

        // With a credential, plans from Pro on use it for new and for existing spans.
        scene.app.set_plan(Plan::Pro).await;
        scene.store_credential(json!({})).await.ok();
        scene.run_due_jobs().await;
        let requests = scene.own.take_requests();
        assert_eq!(requests.iter().map(|it| it.texts.len()).sum::<usize>(), 4, "{requests:?}");
        for (plan, own) in
            [(Plan::Starter, 0), (Plan::Pro, 1), (Plan::Team, 1), (Plan::Business, 1), (Plan::Enterprise, 1)]
        {
            scene.app.set_plan(plan).await;
            scene.store_trace("again").await;
            scene.run_due_jobs().await;
            let requests = scene.own.take_requests();
            assert_eq!(requests.len(), own, "{plan}");
            assert!(requests.iter().all(|it| it.key == TENANT_KEY && it.model == "own-model"), "{requests:?}");
        }
        assert_eq!(scene.platform.take_requests(), []);
        scene.stop().await;
    }

    /// Waiting spans are not sent after the plan is lowered or the credential is deleted.
    async fn lowered_plan_stops_waiting_embedding(on: On) {
        let scene = Scene::with_own_provider(on).await;
        scene.store_trace("one").await;
        scene.app.set_plan(Plan::Starter).await;
        scene.run_due_jobs().await;
        assert_eq!((scene.own.take_requests(), scene.waiting_jobs().await), (vec![], vec![]));
        scene.app.set_plan(Plan::Team).await;
        scene.store_trace("two").await;
        scene.app.session(Role::Owner).delete("/v1/provider-credentials/openai_compatible").await.ok();
        scene.run_due_jobs().await;
        assert_eq!((scene.own.take_requests(), scene.waiting_jobs().await), (vec![], vec![]));
        assert_eq!(scene.platform.take_requests(), []);
        scene.stop().await;
    }

    /// A credential without an embedding model embeds nothing.
    async fn credential_without_embedding_model_embeds_nothing(on: On) {
        let scene = Scene::on(on, Plan::Team).await;
        scene.store_credential(json!({"embedding_model": null, "judge_model_cheap": "small"})).await.ok();
        scene.store_trace("hello").await;
        scene.run_due_jobs().await;
        assert_eq!((scene.own.take_requests(), scene.platform.take_requests()), (vec![], vec![]));
        scene.stop().await;
    }

    /// The allow list contains one address and no other.
    async fn private_provider_address_is_rejected(on: On) {
        let scene = Scene::on(on, Plan::Team).await;
        let platforms = scene.store_credential(json!({"base_url": scene.platform.url()})).await;
        platforms.is(422, "validation_failed");
        // An address that was removed from the allow list is rejected when it is used.
        scene.store_credential(json!({})).await.ok();
        scene.store_trace("hello").await;
        let closed = scene.app.beside_with(&[]).await;
        scene.app.advance(2);
        closed.drain().await;
        assert_eq!(scene.own.take_requests(), []);
        assert_eq!(scene.waiting_jobs().await.len(), 1);
        closed.stop().await;
        scene.stop().await;
    }
}
