//! Repeated requests with the same `Idempotency-Key`.

use api::Role;
use reqwest::Method;
use serde_json::{Value, json};
use tests::{Caller, Reply, on_both_databases};

async fn post(caller: &Caller, path: &str, key: &str, body: &Value) -> Reply {
    caller.send(caller.request(Method::POST, path).header("idempotency-key", key).json(body)).await
}

fn replayed(reply: &Reply) -> bool {
    reply.headers.get("idempotency-replayed").is_some_and(|it| it == "true")
}

on_both_databases! {
    async fn repeated_request_gets_the_first_response(app: TestApp) {
        let key = app.full_key();
        let first = post(&key, "/v1/ingest", "a", &json!({"name": "n"})).await;
        let again = post(&key, "/v1/ingest", "a", &json!({"name": "n"})).await;
        assert_eq!((first.status, again.status), (201, 201));
        assert_eq!(first.text(), again.text());
        assert!(!replayed(&first) && replayed(&again));
        assert_eq!(first.headers["content-type"], again.headers["content-type"]);
        assert_eq!(key.get("/v1/traces").await.ok()["traces"].as_array().unwrap().len(), 1);
        post(&key, "/v1/ingest", "a", &json!({"name": "m"})).await.is(422, "idempotency_key_reused");

        // A request with another path, credential, tenant or key is a different request.
        assert!(!replayed(&post(&key, "/v1/ingest/batch", "a", &json!({"traces": []})).await));
        assert!(!replayed(&post(&app.session(Role::Owner), "/v1/ingest", "a", &json!({"name": "n"})).await));
        let (_, other) = app.other_tenant(api::Plan::Enterprise).await;
        assert!(!replayed(&post(&other, "/v1/ingest", "a", &json!({"name": "n"})).await));
        assert!(!replayed(&post(&key, "/v1/ingest", "b", &json!({"name": "n"})).await));

        app.advance(24 * 3_600 - 1);
        assert!(replayed(&post(&key, "/v1/ingest", "a", &json!({"name": "n"})).await));
        app.advance(1);
        assert!(!replayed(&post(&key, "/v1/ingest", "a", &json!({"name": "n"})).await), "a day is over");
    }

    /// The same body for another project is a different request.
    async fn idempotency_key_includes_project_header(app: TestApp) {
        let key = app.full_key();
        let to = async |project: &str| {
            let request = key.request(Method::POST, "/v1/ingest").header("idempotency-key", "a");
            key.send(request.header("x-project-name", project).json(&json!({"name": "n"}))).await
        };
        to("one").await.ok();
        to("two").await.is(422, "idempotency_key_reused");
        assert!(replayed(&to("one").await));
    }

    async fn failed_response_is_not_stored(app: TestApp) {
        let key = app.full_key();
        post(&key, "/v1/ingest", "a", &json!({"latency_ms": -1})).await.is(422, "validation_failed");
        post(&key, "/v1/ingest", "a", &json!({"latency_ms": 1})).await.ok();
        // A caller without access gets the error every time.
        let query = app.new_key(Role::Owner, &["query"]).await;
        for _ in 0..2 {
            post(&query, "/v1/ingest", "a", &json!({})).await.is(403, "scope_forbidden");
        }
    }

    async fn stored_response_contains_no_secret(app: TestApp) {
        let owner = app.session(Role::Owner);
        let first = post(&owner, "/v1/apikeys", "k", &json!({"name": "n"})).await.ok();
        let again = post(&owner, "/v1/apikeys", "k", &json!({"name": "n"})).await;
        assert!(replayed(&again) && again.status == 201);
        let again = again.json();
        assert_eq!((&again["id"], &again["prefix"]), (&first["id"], &first["prefix"]));
        assert!(first["secret"].is_string() && again.get("secret").is_none(), "{again}");
        assert_eq!(owner.get("/v1/apikeys").await.ok()["apikeys"].as_array().unwrap().len(), 2);
    }

    async fn invalid_idempotency_key_is_rejected(app: TestApp) {
        let key = app.full_key();
        let longest = "x".repeat(255);
        assert_eq!(post(&key, "/v1/ingest", &longest, &json!({})).await.status, 201);
        let longer = "x".repeat(256);
        for bad in ["", "a b", longer.as_str(), "caf\u{e9}"] {
            let value = reqwest::header::HeaderValue::from_bytes(bad.as_bytes()).unwrap();
            let request = key.request(Method::POST, "/v1/ingest").header("idempotency-key", value).json(&json!({}));
            key.send(request).await.is(422, "validation_failed");
        }
        let twice = key.request(Method::POST, "/v1/ingest").header("idempotency-key", "a").header("idempotency-key", "b");
        key.send(twice.json(&json!({}))).await.is(422, "validation_failed");
        // The header has an effect only on POST.
        let get = key.request(Method::GET, "/v1/traces").header("idempotency-key", "a");
        assert!(!replayed(&key.send(get).await));
    }

    /// One of several concurrent requests is executed; the others must wait or get its response.
    async fn concurrent_requests_execute_once_per_key(app: TestApp) {
        let owner = app.session(Role::Owner);
        let all = (0..20).map(|_| {
            let owner = owner.clone();
            async move { post(&owner, "/v1/projects", "p", &json!({"name": "only one"})).await }
        });
        for reply in futures::future::join_all(all).await {
            match reply.status {
                201 => {}
                _ => {
                    reply.is(409, "idempotency_in_flight");
                }
            }
        }
        assert!(replayed(&post(&owner, "/v1/projects", "p", &json!({"name": "only one"})).await));
    }

    /// Concurrent requests that fail pass the key to each other, and each gets its own outcome.
    async fn concurrent_failures_get_their_own_responses(app: TestApp) {
        let key = app.full_key();
        for n in 0..tests::rounds(40) {
            let all = (0..16).map(|_| {
                let (key, name) = (key.clone(), n.to_string());
                async move { post(&key, "/v1/ingest", &name, &json!({"latency_ms": -1})).await }
            });
            for reply in futures::future::join_all(all).await {
                match reply.status {
                    422 => reply.is(422, "validation_failed"),
                    _ => reply.is(409, "idempotency_in_flight"),
                };
            }
        }
    }

    /// A request that a dead process began can be executed again later.
    async fn abandoned_request_is_executed_again(app: TestApp) {
        use sea_orm::{ActiveModelTrait, EntityTrait, IntoActiveModel, Set};
        let key = app.full_key();
        post(&key, "/v1/ingest", "a", &json!({"id": "x"})).await.ok();
        let db = &app.app.db.write;
        let row = entities::idempotency::Entity::find().one(db).await.unwrap().unwrap();
        let mut begun = row.into_active_model();
        begun.status = Set(None);
        begun.expires_at = Set(tests::app::TEST_START_MICROS + 120_000_000);
        begun.update(db).await.unwrap();
        post(&key, "/v1/ingest", "a", &json!({"id": "x"})).await.is(409, "idempotency_in_flight");
        app.advance(120);
        post(&key, "/v1/ingest", "a", &json!({"id": "x"})).await.is(409, "conflict");
    }
}
