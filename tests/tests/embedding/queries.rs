//! Text queries are embedded with the tenant's own key only.

use tests::hang::must_end;

use super::*;
use crate::provider::Behaviour;

async fn ask(scene: &Scene, question: &str) -> Reply {
    scene.app.full_key().get(&format!("/v1/search/spans?q={question}")).await
}

on_both! {
    /// The platform's provider embeds spans of Pro in the background, but no queries.
    async fn text_query_requires_own_provider(on: On) {
        let scene = Scene::on(on, Plan::Pro).await;
        scene.store_trace("hello").await;
        scene.run_due_jobs().await;
        assert_eq!((scene.platform.take_requests().len(), scene.vector_models().await), (1, vec!["platform-model".to_owned()]));
        let refused = ask(&scene, "first").await;
        refused.is(502, "upstream_failed");
        assert!(refused.text().contains("PUT /v1/provider-credentials/openai"), "{}", refused.text());
        // A vector search finds the span's vector.
        let body = json!({"vector": vec![1; 1536]});
        let found = scene.app.full_key().post("/v1/search/spans", &body).await.ok();
        assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
        scene.store_credential(json!({})).await.ok();
        ask(&scene, "second").await.ok();
        scene.app.set_plan(Plan::Team).await;
        ask(&scene, "third").await.ok();
        let requests = |provider: &Provider| provider.take_requests().into_iter().map(|it| (it.key, it.texts)).collect::<Vec<_>>();
        assert_eq!(requests(&scene.platform), []);
        let own = ["second", "third"].map(|it| (TENANT_KEY.to_owned(), vec![it.to_owned()]));
        assert_eq!(requests(&scene.own), own);
        scene.stop().await;
    }

    /// A query vector is cached per credential, and is not used after a change of the credential.
    async fn changed_credential_embeds_query_again(on: On) {
        let scene = Scene::with_own_provider(on).await;
        for _ in 0..2 {
            ask(&scene, "hello").await.ok();
        }
        assert_eq!(scene.own.take_requests().len(), 1);
        let path = "/v1/provider-credentials/openai_compatible";
        assert_eq!(scene.app.session(Role::Owner).delete(path).await.status, 204);
        ask(&scene, "hello").await.is(502, "upstream_failed");
        scene.store_credential(json!({"embedding_model": "other-model"})).await.ok();
        ask(&scene, "hello").await.ok();
        assert_eq!(scene.own.take_requests().iter().map(|it| it.model.as_str()).collect::<Vec<_>>(), ["other-model"]);
        scene.stop().await;
    }

    async fn query_of_unknown_project_calls_no_provider(on: On) {
        let scene = Scene::with_own_provider(on).await;
        let unknown = "hello&project_id=0190a000-0000-7000-8000-000000000001";
        let page = ask(&scene, unknown).await.ok();
        assert_eq!((&page["results"], &page["has_more"]), (&json!([]), &json!(false)));
        assert_eq!((scene.own.take_requests(), scene.app.app.search.bytes()), (vec![], 0));
        scene.stop().await;
    }

    async fn query_without_own_provider_is_502(on: On) {
        let scene = Scene::on(on, Plan::Team).await;
        let refused = ask(&scene, "hello").await;
        refused.is(502, "upstream_failed");
        assert!(refused.text().contains("/v1/provider-credentials/openai"), "{}", refused.text());
        assert_eq!(scene.platform.take_requests(), []);
        scene.stop().await;
    }

    async fn provider_failure_is_reported_without_the_key(on: On) {
        let scene = Scene::with_own_provider(on).await;
        for behaviour in [
            Behaviour::Status(500, None),
            Behaviour::Status(401, None),
            Behaviour::Status(429, Some("60")),
            Behaviour::Status(400, None),
            Behaviour::Body(json!({})),
            Behaviour::Body(json!({"data": [{"index": 0, "embedding": vec![1; 1_537]}]})),
            Behaviour::SendsEndlessly,
        ] {
            scene.own.set_behaviour(behaviour.clone());
            let refused = ask(&scene, "hello").await;
            refused.is(502, "upstream_failed");
            let text = refused.text();
            assert!(text.contains("the embedding provider failed") && !text.contains("canary"), "{behaviour:?} {text}");
        }
        // Failures are not cached: the next query sends a request.
        scene.own.set_behaviour(Behaviour::Succeeds);
        ask(&scene, "hello").await.ok();
        scene.stop().await;
    }

    async fn query_to_a_stalled_provider_times_out(on: On) {
        let scene = Scene::with_own_provider(on).await;
        scene.own.set_behaviour(Behaviour::Stalls);
        must_end("the query times out", ask(&scene, "hello")).await.is(502, "upstream_failed");
        scene.stop().await;
    }
}
