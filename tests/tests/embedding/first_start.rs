//! The operator's settings work: the first tenant gets them as its own credential.

use server::{
    config::{EmbeddingSettings, JudgeSettings},
    first_start,
};

use super::*;

fn settings(key: Option<&str>, base_url: Option<String>) -> EmbeddingSettings {
    EmbeddingSettings {
        embedding_api_key: key.map(str::to_owned),
        embedding_base_url: base_url,
        embedding_model: None,
    }
}

/// Repeats the first start on an empty database. Returns its tenant's credentials.
async fn first_start(app: &TestApp, settings: &EmbeddingSettings) -> (FirstTenant, Value) {
    let db = &app.app.db;
    let now = server::clock::Clock::now(app.clock.as_ref());
    entities::api_key::Entity::delete_many().exec(&db.write).await.unwrap();
    entities::project::Entity::delete_many().exec(&db.write).await.unwrap();
    entities::provider_credential::Entity::delete_many().exec(&db.write).await.unwrap();
    entities::tenant::Entity::delete_many().exec(&db.write).await.unwrap();
    entities::setting::Entity::delete_many().exec(&db.write).await.unwrap();
    let made = first_start::run(db, None, settings, &JudgeSettings::default(), &app.app.sealer, now)
        .await
        .unwrap()
        .unwrap();
    let owner = app.session_of(made.tenant_id, Role::Owner);
    let list = owner.get("/v1/provider-credentials").await.ok()["provider_credentials"].clone();
    (FirstTenant { key: app.bearer(made.secret.reveal()), owner }, list)
}

struct FirstTenant {
    key: tests::Caller,
    owner: tests::Caller,
}

on_both! {
    async fn first_start_stores_operators_embedding_provider(on: On) {
        // The operator's address is private and not on the allow list.
        let scene = Scene::on(on, Plan::Enterprise).await;
        let settings = settings(Some(PLATFORM_KEY), Some(scene.platform.url()));
        let (tenant, list) = first_start(&scene.app, &settings).await;
        assert_eq!(list[0]["provider"], "openai_compatible");
        assert_eq!(list[0]["api_key_last4"], "form");
        assert_eq!(list[0]["embedding_model"], "text-embedding-3-small");
        let span = json!({"name": "chat", "input": "hello"});
        tenant.key.post("/v1/ingest", &json!({"spans": [span]})).await.ok();
        scene.run_due_jobs().await;
        assert_eq!(scene.platform.take_requests().len(), 1);
        assert_eq!(scene.vector_models().await, ["text-embedding-3-small"]);
        // The owner changes the key and the model; the address stays.
        let path = "/v1/provider-credentials/openai_compatible";
        let changed = json!({"base_url": scene.platform.url(), "embedding_model": "e", "api_key": "sk-another"});
        assert_eq!(tenant.owner.put(path, &changed).await.ok()["base_url"], scene.platform.url());
        let other = json!({"base_url": format!("{}/x", scene.platform.url()), "api_key": "k"});
        tenant.owner.put(path, &other).await.is(422, "validation_failed");
        scene.stop().await;
    }

    async fn first_start_with_key_alone_uses_openai(on: On) {
        let app = TestApp::on(on).await;
        let (_, list) = first_start(&app, &settings(Some(PLATFORM_KEY), None)).await;
        assert_eq!((&list[0]["provider"], &list[0]["base_url"]), (&json!("openai"), &Value::Null));
        app.stop().await;
    }

    async fn first_start_stores_address_without_key(on: On) {
        let scene = Scene::on(on, Plan::Enterprise).await;
        let (tenant, list) = first_start(&scene.app, &settings(None, Some(scene.platform.url()))).await;
        assert_eq!(list[0]["api_key_last4"], "");
        let span = json!({"name": "chat", "input": "hello"});
        tenant.key.post("/v1/ingest", &json!({"spans": [span]})).await.ok();
        scene.run_due_jobs().await;
        assert_eq!(scene.platform.take_requests()[0].key, "");
        scene.stop().await;
    }

    async fn first_start_without_settings_stores_no_credential(on: On) {
        let app = TestApp::on(on).await;
        let (_, list) = first_start(&app, &settings(None, None)).await;
        assert_eq!(list, json!([]));
        app.stop().await;
    }
}
