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
            scene.say("hello").await;
            scene.work().await;
            let asked = scene.platform.asked();
            assert_eq!(asked.len(), platform, "{plan}");
            assert!(asked.iter().all(|it| it.key == PLATFORM_KEY && it.model == "platform-model"), "{asked:?}");
        }
        assert_eq!(scene.vectors().await, ["platform-model"]);
        assert_eq!(scene.own.asked(), []);

        // With a credential, plans from Pro on use it for new and for existing spans.
        scene.app.set_plan(Plan::Pro).await;
        scene.store_credential(json!({})).await.ok();
        scene.work().await;
        let asked = scene.own.asked();
        assert_eq!(asked.iter().map(|it| it.texts.len()).sum::<usize>(), 4, "{asked:?}");
        for (plan, own) in
            [(Plan::Starter, 0), (Plan::Pro, 1), (Plan::Team, 1), (Plan::Business, 1), (Plan::Enterprise, 1)]
        {
            scene.app.set_plan(plan).await;
            scene.say("again").await;
            scene.work().await;
            let asked = scene.own.asked();
            assert_eq!(asked.len(), own, "{plan}");
            assert!(asked.iter().all(|it| it.key == KEY && it.model == "own-model"), "{asked:?}");
        }
        assert_eq!(scene.platform.asked(), []);
        scene.stop().await;
    }

    /// Waiting spans are not sent after the plan is lowered or the credential is deleted.
    async fn lowered_plan_stops_waiting_embedding(on: On) {
        let scene = Scene::own(on).await;
        scene.say("one").await;
        scene.app.set_plan(Plan::Starter).await;
        scene.work().await;
        assert_eq!((scene.own.asked(), scene.waiting().await), (vec![], vec![]));
        scene.app.set_plan(Plan::Team).await;
        scene.say("two").await;
        scene.app.session(Role::Owner).delete("/v1/provider-credentials/openai_compatible").await.ok();
        scene.work().await;
        assert_eq!((scene.own.asked(), scene.waiting().await), (vec![], vec![]));
        assert_eq!(scene.platform.asked(), []);
        scene.stop().await;
    }

    /// A credential without an embedding model embeds nothing.
    async fn credential_without_embedding_model_embeds_nothing(on: On) {
        let scene = Scene::on(on, Plan::Team).await;
        scene.store_credential(json!({"embedding_model": null, "judge_model_cheap": "small"})).await.ok();
        scene.say("hello").await;
        scene.work().await;
        assert_eq!((scene.own.asked(), scene.platform.asked()), (vec![], vec![]));
        scene.stop().await;
    }

    /// The allow list contains one address and no other.
    async fn private_addresses_are_refused(on: On) {
        let scene = Scene::on(on, Plan::Team).await;
        let platforms = scene.store_credential(json!({"base_url": scene.platform.url()})).await;
        platforms.is(422, "validation_failed");
        // An address that was removed from the allow list is rejected when it is used.
        scene.store_credential(json!({})).await.ok();
        scene.say("hello").await;
        let closed = scene.app.beside_with(&[]).await;
        scene.app.advance(2);
        closed.drain().await;
        assert_eq!(scene.own.asked(), []);
        assert_eq!(scene.waiting().await.len(), 1);
        closed.stop().await;
        scene.stop().await;
    }
}
