//! Provider credentials: sealed, shown by their last characters, and sealed again.

use api::{Plan, Role};
use reqwest::Method;
use sea_orm::{ActiveModelTrait, EntityTrait, IntoActiveModel, QueryOrder, Set};
use serde_json::{Value, json};
use server::{
    access::{master_key::MasterKey, seal::Sealer},
    audit::Actor,
    reseal::{self, ResealResult},
};
use store::sealed::PROVIDER_KEY;
use tests::{Caller, On, Reply, TestApp, app::MASTER_KEY, on_both_databases};

const CANARY_KEY: &str = "sk-canary-0123456789abcdef";

async fn put(owner: &Caller, provider: &str, body: &Value) -> Reply {
    owner.put(&format!("/v1/provider-credentials/{provider}"), body).await
}

async fn credential_rows(app: &TestApp) -> Vec<entities::provider_credential::Model> {
    use entities::provider_credential::{Column, Entity};
    let rows = Entity::find().order_by_asc(Column::TenantId).order_by_asc(Column::Provider);
    rows.all(&app.app.db.write).await.unwrap()
}

on_both_databases! {
    async fn stored_provider_key_is_never_returned(app: TestApp) {
        let owner = app.session(Role::Owner);
        let body = json!({"api_key": CANARY_KEY, "judge_model_cheap": "small", "unknown": 1});
        let made = put(&owner, "openai", &body).await;
        assert_eq!(made.status, 200);
        let expected = json!({
            "provider": "openai", "api_key_last4": "cdef", "base_url": null, "judge_model_cheap": "small",
            "judge_model_premium": null, "embedding_model": null,
            "created_at": "2026-06-15T12:00:00.000000Z", "updated_at": "2026-06-15T12:00:00.000000Z"});
        assert_eq!(made.json(), expected);
        let list = owner.get("/v1/provider-credentials").await;
        assert_eq!(list.ok()["provider_credentials"], json!([expected]));
        assert!(!list.text().contains("canary"));
        // The stored row does not contain the key in a readable form, and the audit log records only that a
        // key was set.
        let row = &credential_rows(app).await[0];
        assert!(!row.sealed_key.windows(6).any(|it| it == b"canary"));
        let log = owner.get("/v1/audit-log?action=provider_credential.set").await;
        assert_eq!(log.ok()["audit_log"][0]["detail"], json!({"base_url": null, "api_key": true}));
        assert!(!log.text().contains("canary"));

        // Without a key in the request, the stored one stays; other absent fields are unset.
        app.advance(5);
        let changed = put(&owner, "openai", &json!({"embedding_model": "e"})).await.ok();
        assert_eq!((&changed["api_key_last4"], &changed["judge_model_cheap"]), (&json!("cdef"), &Value::Null));
        assert_eq!(changed["updated_at"], "2026-06-15T12:00:05.000000Z");
        let path = "/v1/provider-credentials/openai";
        assert_eq!(owner.delete(path).await.status, 204);
        owner.delete(path).await.is(404, "not_found");
        assert_eq!(owner.get("/v1/provider-credentials").await.ok()["provider_credentials"], json!([]));
    }

    async fn invalid_provider_credential_is_rejected(app: TestApp) {
        let owner = app.session(Role::Owner);
        for (provider, body, field) in [
            ("openai", json!({}), "api_key"),
            ("openai", json!({"api_key": ""}), "api_key"),
            ("openai", json!({"api_key": "a b"}), "api_key"),
            ("openai", json!({"api_key": "k\u{e9}y"}), "api_key"),
            ("openai", json!({"api_key": "x".repeat(1_001)}), "api_key"),
            ("openai", json!({"api_key": CANARY_KEY, "judge_model_cheap": "m".repeat(201)}), "judge_model_cheap"),
            ("openai", json!({"api_key": CANARY_KEY, "embedding_model": "a\nb"}), "embedding_model"),
        ] {
            let reply = put(&owner, provider, &body).await;
            reply.is(422, "validation_failed");
            assert_eq!(reply.json()["fields"][0]["field"], field, "{body}");
        }
        for url in [
            "http://example.com/v1", "https://127.0.0.1/v1", "https://10.0.0.1", "https://[::1]/", "https://localhost/",
            "https://2130706433/", "https://user:pw@1.1.1.1/", "https://169.254.169.254/", "ftp://1.1.1.1/", "nonsense",
            "https://1.1.1.1/v1?x=1", "https://1.1.1.1/#f",
        ] {
            let reply = put(&owner, "openai_compatible", &json!({"api_key": CANARY_KEY, "base_url": url})).await;
            reply.is(422, "validation_failed");
            assert_eq!(reply.json()["fields"][0]["field"], "base_url", "{url}");
        }
        put(&owner, "openai_compatible", &json!({"api_key": CANARY_KEY})).await.is(400, "invalid_body");
        put(&owner, "openai", &json!([])).await.is(400, "invalid_body");
        put(&owner, "openai", &json!({"api_key": 1})).await.is(400, "invalid_body");
        put(&owner, "gemini", &json!({"api_key": CANARY_KEY})).await.is(404, "not_found");
        owner.delete("/v1/provider-credentials/gemini").await.is(404, "not_found");
        assert!(credential_rows(app).await.is_empty());
    }

    async fn provider_credential_list_is_paged(app: TestApp) {
        let owner = app.session(Role::Owner);
        for provider in ["openai", "anthropic"] {
            put(&owner, provider, &json!({"api_key": CANARY_KEY})).await.ok();
        }
        let path = "/v1/provider-credentials";
        let providers = |page: &Value| {
            page["provider_credentials"].as_array().unwrap().iter().map(|it| it["provider"].clone()).collect::<Vec<_>>()
        };
        let first = owner.get(&format!("{path}?limit=1")).await.ok();
        assert_eq!((providers(&first), &first["has_more"]), (vec![json!("anthropic")], &json!(true)));
        let cursor = first["next_cursor"].as_str().unwrap();
        let last = owner.get(&format!("{path}?limit=1&cursor={cursor}")).await.ok();
        assert_eq!((providers(&last), &last["has_more"]), (vec![json!("openai")], &json!(false)));
        assert_eq!(last["next_cursor"], Value::Null);
        for query in ["limit=0", "limit=201", "limit=", "limit=x"] {
            owner.get(&format!("{path}?{query}")).await.is(400, "invalid_query");
        }
        for cursor in ["x", ""] {
            owner.get(&format!("{path}?cursor={cursor}")).await.is(400, "invalid_cursor");
        }
        // A cursor is valid for its list only.
        owner.get(&format!("/v1/models?cursor={cursor}")).await.is(400, "invalid_cursor");
    }

    /// A stored key is never sent to an address other than the one it was given for.
    async fn changed_base_url_requires_the_key_again(app: TestApp) {
        let owner = app.session(Role::Owner);
        let at = |url: &str| json!({"base_url": url, "api_key": CANARY_KEY});
        let made = put(&owner, "openai_compatible", &at("https://1.1.1.1/v1/")).await.ok();
        assert_eq!(made["base_url"], "https://1.1.1.1/v1");
        put(&owner, "openai_compatible", &json!({"base_url": "https://1.1.1.1/v1", "embedding_model": "e"})).await.ok();
        let moved = put(&owner, "openai_compatible", &json!({"base_url": "https://8.8.8.8/v1"})).await;
        moved.is(422, "validation_failed");
        assert_eq!(moved.json()["fields"][0]["field"], "api_key");
        put(&owner, "openai_compatible", &at("https://8.8.8.8/v1")).await.ok();
        put(&owner, "openai", &json!({"api_key": CANARY_KEY})).await.ok();
        put(&owner, "openai", &json!({"base_url": "https://8.8.8.8"})).await.is(422, "validation_failed");
    }

    /// A secret that was moved to another tenant or row, or damaged, cannot be unsealed.
    async fn sealed_secret_is_unsealed_only_in_its_own_row(app: TestApp) {
        let (other, _) = app.other_tenant(Plan::Enterprise).await;
        let owners = [app.session(Role::Owner), app.session_of(other, Role::Owner)];
        for owner in &owners {
            put(owner, "openai", &json!({"api_key": CANARY_KEY})).await.ok();
            put(owner, "anthropic", &json!({"api_key": CANARY_KEY})).await.ok();
        }
        let rows = credential_rows(app).await;
        let opens = |sealed: &[u8], like: &entities::provider_credential::Model| {
            let place = PROVIDER_KEY.location(like.tenant_id, &like.provider);
            app.app.sealer.unseal(place, sealed).is_ok()
        };
        for (i, row) in rows.iter().enumerate() {
            for (k, other) in rows.iter().enumerate() {
                assert_eq!(opens(&row.sealed_key, other), i == k);
            }
            let mut damaged = row.sealed_key.clone();
            *damaged.last_mut().unwrap() ^= 1;
            assert!(!opens(&damaged, row));
        }
        // The service keeps running with a damaged secret.
        let mut damaged = rows[0].clone().into_active_model();
        damaged.sealed_key = Set(vec![1, 2, 3]);
        damaged.update(&app.app.db.write).await.unwrap();
        for owner in &owners {
            assert_eq!(owner.get("/v1/provider-credentials").await.ok()["provider_credentials"].as_array().unwrap().len(), 2);
        }
    }

    /// Seals all secrets with a new master key while the server responds and stores.
    async fn master_key_is_replaced_while_server_runs(app: TestApp) {
        let owner = app.session(Role::Owner);
        for provider in ["openai", "anthropic"] {
            put(&owner, provider, &json!({"api_key": CANARY_KEY})).await.ok();
        }
        let like = credential_rows(app).await.remove(0);
        let mut others = 0;
        for _ in 1..tests::rounds(10) {
            let (other, _) = app.other_tenant(Plan::Enterprise).await;
            let sealed_key = app.app.sealer.seal(PROVIDER_KEY.location(other, "openai"), CANARY_KEY).unwrap();
            let provider = "openai".to_owned();
            let row = entities::provider_credential::Model { tenant_id: other, provider, sealed_key, ..like.clone() };
            store::credentials::set(&app.app.db.write, row).await.unwrap();
            others += 1;
        }
        // Keys are read and stored at the same time.
        let busy = tokio::spawn({
            let owner = owner.clone();
            async move {
                for n in 0..20 {
                    put(&owner, "anthropic", &json!({"api_key": CANARY_KEY, "judge_model_cheap": format!("m{n}")})).await.ok();
                    owner.get("/v1/provider-credentials").await.ok();
                }
            }
        });
        let (old, new) = (MASTER_KEY, MasterKey::generate().unwrap());
        let both = Sealer::new(&MasterKey::parse(&format!("new:{new},{old}")).unwrap());
        let actor = |tenant_id| Actor { tenant_id, kind: api::audit::ActorKind::Operator, id: "op".to_owned(), request_id: None };
        let run = || reseal::run(&app.app.db, &both, actor, tests::app::TEST_START_MICROS);
        let first = run().await.unwrap();
        assert_eq!(first.secrets, others + 2);
        busy.await.unwrap();
        // This server seals with the old key, so secrets that it stored meanwhile need a second run.
        assert!(run().await.unwrap().resealed <= 1);
        assert_eq!(run().await.unwrap(), ResealResult { secrets: others + 2, resealed: 0 });
        let alone = Sealer::new(&MasterKey::parse(&format!("new:{new}")).unwrap());
        for row in credential_rows(app).await {
            let place = PROVIDER_KEY.location(row.tenant_id, &row.provider);
            assert_eq!(alone.unseal(place, &row.sealed_key).unwrap(), CANARY_KEY);
        }
        let log = owner.get("/v1/audit-log?action=secrets.reseal").await.ok();
        assert!(log["audit_log"].as_array().unwrap().iter().all(|it| it["detail"]["secrets"].as_u64().unwrap() > 0));
        assert!(!log["audit_log"].as_array().unwrap().is_empty());
        // The error names a missing key.
        let missing = reseal::run(&app.app.db, &Sealer::new(&MasterKey::parse(old).unwrap()), actor, 0).await;
        assert!(missing.unwrap_err().to_string().contains("`new`"));
    }

    /// A damaged secret does not prevent the others from being sealed again.
    async fn damaged_secret_is_reported_and_skipped_by_reseal(app: TestApp) {
        let owner = app.session(Role::Owner);
        for provider in ["anthropic", "openai"] {
            put(&owner, provider, &json!({"api_key": CANARY_KEY})).await.ok();
        }
        let mut damaged = credential_rows(app).await[0].clone().into_active_model();
        damaged.sealed_key = Set(vec![1, 2, 3]);
        damaged.update(&app.app.db.write).await.unwrap();
        let both = MasterKey::parse(&format!("new:{},{MASTER_KEY}", MasterKey::generate().unwrap())).unwrap();
        let both = Sealer::new(&both);
        let actor = |tenant_id| Actor { tenant_id, kind: api::audit::ActorKind::Operator, id: "op".to_owned(), request_id: None };
        let message = reseal::run(&app.app.db, &both, actor, tests::app::TEST_START_MICROS).await.unwrap_err().to_string();
        assert!(message.contains("1 of 2") && message.contains(&format!("anthropic of tenant {}", app.tenant)), "{message}");
        assert!(both.is_current(&credential_rows(app).await[1].sealed_key));
    }
}

/// Follows the instructions in the error for a local model.
async fn refused_address_is_allowed_after_following_the_error_on(database: On) {
    let app = TestApp::on(database).await;
    for (url, value) in [
        ("http://localhost:11434/v1", "127.0.0.1:11434"),
        ("http://127.0.0.1:11434/v1", "127.0.0.1:11434"),
        ("http://[::1]:11434/v1", "[::1]:11434"),
        ("https://10.20.0.7/v1", "10.20.0.7:443"),
    ] {
        let body = json!({"api_key": CANARY_KEY, "base_url": url, "embedding_model": "nomic-embed-text"});
        let refused = put(&app.session(Role::Owner), "openai_compatible", &body).await;
        refused.is(422, "validation_failed");
        let message = refused.json()["fields"][0]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("LOUPE_EGRESS_ALLOW_CIDRS"), "{message}");
        // The value is in backticks.
        assert_eq!(message.split('`').nth(1), Some(value), "{message}");
        let opened = app.beside_with(&["--egress-allow-cidrs", value]).await;
        let stored = put(&opened.session(Role::Owner), "openai_compatible", &body).await.ok();
        assert_eq!(stored["base_url"], url);
        opened.session(Role::Owner).delete("/v1/provider-credentials/openai_compatible").await.ok();
        opened.stop().await;
    }
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_address_is_allowed_by_the_named_setting_on_sqlite() {
    refused_address_is_allowed_after_following_the_error_on(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_address_is_allowed_by_the_named_setting_on_postgres() {
    refused_address_is_allowed_after_following_the_error_on(On::Postgres).await;
}

async fn credential_uses_follow_from_plan(database: On) {
    let app = TestApp::with(database, Plan::Team, &[]).await;
    let owner = app.session(Role::Owner);
    put(&owner, "anthropic", &json!({"api_key": CANARY_KEY, "judge_model_premium": "m"})).await.ok();
    app.set_plan(Plan::Pro).await;
    for body in [
        json!({"api_key": CANARY_KEY}),
        json!({"api_key": CANARY_KEY, "judge_model_cheap": "m"}),
        json!({"api_key": CANARY_KEY, "embedding_model": "e", "judge_model_cheap": "m"}),
    ] {
        let reply = put(&owner, "openai", &body).await;
        reply.is(402, "plan_upgrade_required");
        assert_eq!(reply.json()["required_plan"], "team");
    }
    put(&owner, "openai", &json!({"api_key": CANARY_KEY, "embedding_model": "e"})).await.ok();
    // Credentials left from a higher plan are not shown, but can be deleted.
    app.set_plan(Plan::Starter).await;
    let shown = owner.get("/v1/provider-credentials").await;
    shown.is(402, "plan_upgrade_required");
    assert_eq!(shown.json()["required_plan"], "pro");
    // The named plan allows the request as it is, without a second error.
    for (body, needed) in [
        (json!({"api_key": CANARY_KEY, "embedding_model": "e"}), "pro"),
        (json!({"api_key": CANARY_KEY, "embedding_model": "e", "judge_model_cheap": ""}), "pro"),
        (json!({"api_key": CANARY_KEY}), "team"),
        (json!({"api_key": CANARY_KEY, "judge_model_cheap": "m"}), "team"),
        (json!({"api_key": CANARY_KEY, "embedding_model": "e", "judge_model_premium": "m"}), "team"),
        (json!({"api_key": "two words"}), "team"),
        (json!([]), "pro"),
    ] {
        let reply = put(&owner, "openai", &body).await;
        reply.is(402, "plan_upgrade_required");
        assert_eq!(reply.json()["required_plan"], needed, "{body}");
    }
    let gone = owner.send(owner.request(Method::DELETE, "/v1/provider-credentials/anthropic")).await;
    assert_eq!(gone.status, 204);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credential_uses_follow_from_plan_on_sqlite() {
    credential_uses_follow_from_plan(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credential_uses_follow_from_plan_on_postgres() {
    credential_uses_follow_from_plan(On::Postgres).await;
}
