//! Text queries are embedded with the tenant's own key only.

use super::*;
use crate::provider::Mood;

async fn ask(scene: &Scene, question: &str) -> Reply {
    scene.app.full_key().get(&format!("/v1/search/spans?q={question}")).await
}

on_both! {
    /// The platform's provider embeds spans of Pro in the background, but no queries.
    async fn text_query_needs_the_tenants_own_provider(on: On) {
        let scene = Scene::on(on, Plan::Pro).await;
        scene.say("hello").await;
        scene.work().await;
        assert_eq!((scene.platform.asked().len(), scene.vectors().await), (1, vec!["platform-model".to_owned()]));
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
        let asked = |provider: &Provider| provider.asked().into_iter().map(|it| (it.key, it.texts)).collect::<Vec<_>>();
        assert_eq!(asked(&scene.platform), []);
        let own = ["second", "third"].map(|it| (KEY.to_owned(), vec![it.to_owned()]));
        assert_eq!(asked(&scene.own), own);
        scene.stop().await;
    }

    /// A query vector is cached per credential, and is not used after a change of the credential.
    async fn changed_credential_embeds_query_again(on: On) {
        let scene = Scene::own(on).await;
        for _ in 0..2 {
            ask(&scene, "hello").await.ok();
        }
        assert_eq!(scene.own.asked().len(), 1);
        let path = "/v1/provider-credentials/openai_compatible";
        assert_eq!(scene.app.session(Role::Owner).delete(path).await.status, 204);
        ask(&scene, "hello").await.is(502, "upstream_failed");
        scene.store_credential(json!({"embedding_model": "other-model"})).await.ok();
        ask(&scene, "hello").await.ok();
        assert_eq!(scene.own.asked().iter().map(|it| it.model.as_str()).collect::<Vec<_>>(), ["other-model"]);
        scene.stop().await;
    }

    async fn query_of_unknown_project_calls_no_provider(on: On) {
        let scene = Scene::own(on).await;
        let unknown = "hello&project_id=0190a000-0000-7000-8000-000000000001";
        let page = ask(&scene, unknown).await.ok();
        assert_eq!((&page["results"], &page["has_more"]), (&json!([]), &json!(false)));
        assert_eq!((scene.own.asked(), scene.app.app.search.bytes()), (vec![], 0));
        scene.stop().await;
    }

    async fn query_without_own_provider_is_502(on: On) {
        let scene = Scene::on(on, Plan::Team).await;
        let refused = ask(&scene, "hello").await;
        refused.is(502, "upstream_failed");
        assert!(refused.text().contains("/v1/provider-credentials/openai"), "{}", refused.text());
        assert_eq!(scene.platform.asked(), []);
        scene.stop().await;
    }

    async fn failures_are_told_without_the_key(on: On) {
        let scene = Scene::own(on).await;
        for mood in [
            Mood::Status(500, None),
            Mood::Status(401, None),
            Mood::Status(429, Some("60")),
            Mood::Status(400, None),
            Mood::Body(json!({})),
            Mood::Body(json!({"data": [{"index": 0, "embedding": vec![1; 1_537]}]})),
            Mood::Endless,
        ] {
            scene.own.turn(mood.clone());
            let refused = ask(&scene, "hello").await;
            refused.is(502, "upstream_failed");
            let text = refused.text();
            assert!(text.contains("the embedding provider failed") && !text.contains("canary"), "{mood:?} {text}");
        }
        // Failures are not cached: the next query sends a request.
        scene.own.turn(Mood::Well);
        ask(&scene, "hello").await.ok();
        scene.stop().await;
    }

    async fn stalled_provider_times_out_after_ten_seconds(on: On) {
        let scene = Scene::own(on).await;
        scene.own.turn(Mood::Stalls);
        let began = std::time::Instant::now();
        ask(&scene, "hello").await.is(502, "upstream_failed");
        assert!((9..15).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
        scene.stop().await;
    }
}
