//! Creates and changes projects.

use api::Role;
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tests::{Caller, Reply, on_both_databases};

async fn patch(owner: &Caller, id: &Value, body: &Value) -> Reply {
    let path = format!("/v1/projects/{}", id.as_str().unwrap());
    owner.send(owner.request(Method::PATCH, &path).json(body)).await
}

on_both_databases! {
    async fn project_is_created_and_changed(app: TestApp) {
        let (owner, member) = (app.session(Role::Owner), app.session(Role::Member));
        let made = member.post("/v1/projects", &json!({"name": " checkout bot ", "retention_days": 30})).await;
        assert_eq!(made.status, 201);
        let made = made.json();
        assert_eq!(
            (&made["name"], &made["status"], &made["prompt_autoship_enabled"], &made["retention_days"], &made["archived_at"]),
            (&json!("checkout bot"), &json!("active"), &json!(false), &json!(30), &Value::Null)
        );
        app.advance(1);
        let changed = patch(&owner, &made["id"], &json!({"prompt_autoship_enabled": true})).await.ok();
        assert_eq!((&changed["prompt_autoship_enabled"], &changed["retention_days"]), (&json!(true), &json!(30)));
        assert_eq!(changed["updated_at"], "2026-06-15T12:00:01.000000Z");
        // A null retention keeps everything; an absent one stays unchanged. A change without an effect is not
        // stored.
        app.advance(1);
        let changed = patch(&owner, &made["id"], &json!({"retention_days": null, "name": "bot", "unknown": 1})).await.ok();
        assert_eq!((&changed["retention_days"], &changed["name"]), (&Value::Null, &json!("bot")));
        app.advance(1);
        let same = patch(&owner, &made["id"], &json!({"name": "bot", "prompt_autoship_enabled": null})).await.ok();
        assert_eq!(same, changed);
        assert_eq!(owner.get(&format!("/v1/projects/{}", made["id"].as_str().unwrap())).await.ok(), changed);
        // Traces with the new name arrive in the project; the old name is free.
        app.full_key().post("/v1/ingest", &json!({"project_name": "bot"})).await.ok();
        let traces = owner.get(&format!("/v1/traces?project_id={}", made["id"].as_str().unwrap())).await.ok();
        assert_eq!(traces["traces"].as_array().unwrap().len(), 1);
        member.post("/v1/projects", &json!({"name": "checkout bot"})).await.ok();
    }

    async fn invalid_project_is_rejected(app: TestApp) {
        let owner = app.session(Role::Owner);
        let id = json!(app.project);
        for (body, field) in [
            (json!({"name": ""}), "name"),
            (json!({"name": "  "}), "name"),
            (json!({"name": "x".repeat(501)}), "name"),
            (json!({"name": "n", "retention_days": 0}), "retention_days"),
            (json!({"name": "n", "retention_days": -1}), "retention_days"),
            (json!({"name": "n", "retention_days": 3_651}), "retention_days"),
            (json!({"name": "n", "retention_days": i64::MAX}), "retention_days"),
        ] {
            for reply in [owner.post("/v1/projects", &body).await, patch(&owner, &id, &body).await] {
                reply.is(422, "validation_failed");
                assert_eq!(reply.json()["fields"][0]["field"], field, "{body}");
            }
        }
        for body in [json!([]), json!({"name": 1}), json!({"name": "n", "retention_days": "30"}), json!({"name": "n", "retention_days": 1.5}), json!({"name": "n", "prompt_autoship_enabled": "yes"})] {
            owner.post("/v1/projects", &body).await.is(400, "invalid_body");
            patch(&owner, &id, &body).await.is(400, "invalid_body");
        }
        owner.post("/v1/projects", &json!({})).await.is(400, "invalid_body");
        owner.post("/v1/projects", &json!({"name": "default"})).await.is(409, "conflict");
        let other = owner.post("/v1/projects", &json!({"name": "other"})).await.ok();
        patch(&owner, &other["id"], &json!({"name": "default"})).await.is(409, "conflict");
        // Any text is a valid name.
        for name in ["a/b", "..", "%00", "\u{1f600}", "'; --", "a\u{0}b", "<b>", "\u{202e}x"] {
            let made = owner.post("/v1/projects", &json!({"name": name})).await.ok();
            assert_eq!(made["name"], name.replace('\0', "\u{fffd}"));
        }
    }

    /// One project stays active despite concurrent requests to archive, and each response is correct.
    async fn concurrent_archiving_leaves_one_active_project(app: TestApp) {
        let owner = app.session(Role::Owner);
        let mut ids = vec![app.project.to_string()];
        for n in 0..7 {
            let made = owner.post("/v1/projects", &json!({"name": format!("p{n}")})).await.ok();
            ids.push(made["id"].as_str().unwrap().to_owned());
        }
        for _ in 0..tests::rounds(3) {
            let archive = ids.iter().map(|id| {
                let owner = owner.clone();
                async move { owner.post(&format!("/v1/projects/{id}/archive"), &json!({})).await }
            });
            let told = join_all(archive).await;
            let refused: Vec<_> = told.iter().filter(|it| it.status != 200).collect();
            assert_eq!(refused.len(), 1);
            refused[0].is(409, "error.project.cannot_archive_last");
            assert_eq!(owner.get("/v1/projects").await.ok()["projects"].as_array().unwrap().len(), 1);
            let unarchive = ids.iter().map(|id| {
                let owner = owner.clone();
                async move { owner.post(&format!("/v1/projects/{id}/unarchive"), &json!({})).await.status }
            });
            assert!(join_all(unarchive).await.iter().all(|it| *it == 200));
        }
    }

    async fn current_key_endpoint_returns_own_key(app: TestApp) {
        let query = app.new_key(Role::Member, &["query"]).await;
        let current = query.get("/v1/apikeys/current").await.ok();
        assert_eq!((&current["name"], &current["scopes"]), (&json!("test"), &json!(["query"])));
        assert!(current.get("secret").is_none());
        assert_eq!(query.get("/v1/me").await.ok()["api_key"], current);
        app.session(Role::Owner).get("/v1/apikeys/current").await.is(404, "not_found");
    }
}
