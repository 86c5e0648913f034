//! The operator's settings work: the first tenant gets them as its own credential.

use sea_orm::EntityTrait;
use server::{
    config::{EmbeddingSettings, JudgeSettings},
    first_start,
};

use super::*;

/// Repeats the first start on an empty database. Returns its tenant and the tenant's credentials.
async fn first_start(
    app: &TestApp,
    embedding: &EmbeddingSettings,
    judge: &JudgeSettings,
) -> (uuid::Uuid, Value) {
    let db = &app.app.db;
    let now = server::clock::Clock::now(app.clock.as_ref());
    entities::api_key::Entity::delete_many().exec(&db.write).await.unwrap();
    entities::project::Entity::delete_many().exec(&db.write).await.unwrap();
    entities::provider_credential::Entity::delete_many().exec(&db.write).await.unwrap();
    entities::tenant::Entity::delete_many().exec(&db.write).await.unwrap();
    entities::setting::Entity::delete_many().exec(&db.write).await.unwrap();
    let made = first_start::run(db, None, embedding, judge, &app.app.sealer, now).await.unwrap().unwrap();
    let owner = app.session_of(made.tenant_id, Role::Owner);
    let list = owner.get("/v1/provider-credentials").await.ok()["provider_credentials"].clone();
    (made.tenant_id, list)
}

fn owned(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn shown(list: &Value) -> Vec<String> {
    let text = |it: &Value| it.as_str().unwrap_or("-").to_owned();
    let fields = ["provider", "api_key_last4", "base_url", "judge_model_cheap", "embedding_model"];
    list.as_array().unwrap().iter().map(|row| fields.map(|it| text(&row[it])).join(" ")).collect()
}

on_both! {
    /// The operator's address is private and not on the allow list.
    async fn first_start_stores_operators_judge(on: On) {
        let scene = Scene::on(on, Plan::Enterprise, &[]).await;
        let judge = JudgeSettings {
            judge_openai_api_key: owned(PLATFORM_KEY),
            judge_openai_base_url: Some(scene.platform.url()),
            judge_openai_cheap_model: owned("local"),
            judge_anthropic_api_key: owned("sk-of-the-other"),
            ..JudgeSettings::default()
        };
        let (tenant, list) = first_start(&scene.app, &EmbeddingSettings::default(), &judge).await;
        let expected = ["anthropic ther - - -", &format!("openai form {} local -", scene.platform.url())];
        assert_eq!(shown(&list), expected);
        let judge = &scene.app.app.judge;
        let chosen = judge.select(tenant, Plan::Enterprise, None, ModelTier::Cheap).await.unwrap().unwrap();
        assert_eq!(judge.ask(&chosen, &judge_request()).await.unwrap().usage.model.as_deref(), Some("local"));
        assert_eq!(scene.platform.take_requests()[0].key, PLATFORM_KEY);
        scene.stop().await;
    }

    /// Each provider has one credential, even if the same provider embeds.
    async fn first_start_stores_one_credential_per_provider(on: On) {
        let app = TestApp::on(on).await;
        let judge = JudgeSettings { judge_openai_api_key: owned("sk-key-that-judges"), ..JudgeSettings::default() };
        let embedding = |key: &str, base_url: Option<&str>| EmbeddingSettings {
            embedding_api_key: owned(key),
            embedding_base_url: base_url.map(str::to_owned),
            embedding_model: owned("e"),
        };
        for (embedding, expected) in [
            (embedding("sk-key-that-judges", None), vec!["openai dges - - e"]),
            (
                embedding("sk-key-that-embeds", None),
                vec!["openai dges - - -", "openai_compatible beds https://api.openai.com/v1 - e"],
            ),
            (
                embedding("sk-key-that-judges", Some("https://x.example/v1/")),
                vec!["openai dges - - -", "openai_compatible dges https://x.example/v1 - e"],
            ),
        ] {
            assert_eq!(shown(&first_start(&app, &embedding, &judge).await.1), expected);
        }
        app.stop().await;
    }
}
