//! The audit log.

use api::{Plan, Role};
use reqwest::Method;
use serde_json::{Value, json};
use tests::{Caller, On, TestApp, on_both_databases};

/// Returns the records of an action, newest first.
async fn records(owner: &Caller, action: &str) -> Vec<Value> {
    let list = owner.get(&format!("/v1/audit-log?action={action}")).await.ok();
    list["audit_log"].as_array().unwrap().clone()
}

on_both_databases! {
    async fn each_sensitive_action_leaves_one_record(app: TestApp) {
        let owner = app.session_as("o@acme", Role::Owner);
        let send = async |method: Method, path: &str, body: Value| {
            let request = owner.request(method, path).header("x-request-id", "the-request").json(&body);
            let reply = owner.send(request).await;
            if reply.body.is_empty() { Value::Null } else { reply.ok() }
        };
        let id = |it: &Value| it["id"].as_str().unwrap().to_owned();
        app.session_as("v@acme", Role::Viewer).get("/v1/me").await.ok();
        app.session_as("v@acme", Role::Member).get("/v1/me").await.ok();
        let key = id(&send(Method::POST, "/v1/apikeys", json!({"name": "k"})).await);
        send(Method::DELETE, &format!("/v1/apikeys/{key}"), Value::Null).await;
        let project = id(&send(Method::POST, "/v1/projects", json!({"name": "p"})).await);
        let path = format!("/v1/projects/{project}");
        send(Method::PATCH, &path, json!({"prompt_autoship_enabled": true})).await;
        // A change without an effect is not recorded.
        send(Method::PATCH, &path, json!({"prompt_autoship_enabled": true})).await;
        send(Method::POST, &format!("{path}/archive"), json!({})).await;
        send(Method::POST, &format!("{path}/archive"), json!({})).await;
        send(Method::POST, &format!("{path}/unarchive"), json!({})).await;
        send(Method::PUT, "/v1/models/m", json!({"input_per_million": 1, "output_per_million": 2})).await;
        let members = owner.get("/v1/members").await.ok();
        let rows = members["members"].as_array().unwrap();
        let member = id(rows.iter().find(|it| it["subject"] == "v@acme").unwrap());
        send(Method::DELETE, &format!("/v1/members/{member}"), Value::Null).await;
        send(Method::PATCH, &format!("/v1/members/{member}"), json!({"status": "active"})).await;

        for (action, kind, target) in [
            ("api_key.create", "api_key", key.as_str()),
            ("api_key.revoke", "api_key", key.as_str()),
            ("project.create", "project", project.as_str()),
            ("project.update", "project", project.as_str()),
            ("project.archive", "project", project.as_str()),
            ("project.unarchive", "project", project.as_str()),
            ("model_price.set", "model", "m"),
            ("member.role", "member", member.as_str()),
            ("member.remove", "member", member.as_str()),
            ("member.restore", "member", member.as_str()),
        ] {
            let records = records(&owner, action).await;
            assert_eq!(records.len(), 1, "{action}: {records:?}");
            let record = &records[0];
            assert_eq!(record["target"], json!({"kind": kind, "id": target}), "{action}");
            assert_eq!((&record["result"], &record["created_at"]), (&json!("ok"), &json!("2026-06-15T12:00:00.000000Z")));
            if action != "member.role" {
                assert_eq!(record["actor"], json!({"kind": "session", "id": "o@acme"}), "{action}");
                assert_eq!(record["request_id"], "the-request", "{action}");
            }
        }
        assert_eq!(records(&owner, "member.join").await.len(), 2);
        assert_eq!(records(&owner, "project.update").await[0]["detail"], json!({"prompt_autoship_enabled": {"from": false, "to": true}}));
    }

    async fn rejected_action_is_recorded_with_its_error(app: TestApp) {
        let (owner, member) = (app.session(Role::Owner), app.session(Role::Member));
        let archive = format!("/v1/projects/{}/archive", app.project);
        member.post(&archive, &json!({})).await.is(403, "forbidden_role");
        owner.post(&archive, &json!({})).await.is(409, "error.project.cannot_archive_last");
        app.full_key().post("/v1/apikeys", &json!({"name": "k"})).await.is(403, "session_required");
        // Malformed requests, unknown targets and unauthenticated callers are not recorded.
        owner.post("/v1/projects/no-uuid/archive", &json!({})).await.is(400, "invalid_query");
        app.anonymous().post(&archive, &json!({})).await.is(401, "unauthorized");
        let archived = records(&owner, "project.archive").await;
        let brief: Vec<_> = archived.iter().map(|it| (it["result"].as_str().unwrap(), it["actor"]["id"].as_str().unwrap())).collect();
        assert_eq!(brief, [("error.project.cannot_archive_last", "test-owner"), ("forbidden_role", "test-member")]);
        assert_eq!(archived[0]["target"]["id"], app.project.to_string());
        let keys = records(&owner, "api_key.create").await;
        assert_eq!((&keys[0]["result"], &keys[0]["actor"]["kind"]), (&json!("session_required"), &json!("api_key")));
    }

    /// A project that ingest creates is recorded with its actor.
    async fn project_created_by_ingest_is_recorded(app: TestApp) {
        app.full_key().post("/v1/ingest", &json!({"project_name": "named"})).await.ok();
        let made = records(&app.session(Role::Owner), "project.create").await;
        assert_eq!(made.len(), 1);
        assert_eq!((&made[0]["detail"]["name"], &made[0]["actor"]["kind"]), (&json!("named"), &json!("api_key")));
    }

    /// A caller that is rejected repeatedly does not fill the log.
    async fn audit_log_limits_records_of_rejections(app: TestApp) {
        let query = app.new_key(Role::Member, &["query"]).await;
        for _ in 0..60 {
            query.post("/v1/projects", &json!({})).await.is(403, "scope_forbidden");
        }
        let owner = app.session(Role::Owner);
        let refused = records(&owner, "project.create").await.len();
        assert!((1..=20).contains(&refused), "{refused}");
        // Other callers, other actions and the next minute are not affected.
        app.session_as("v", Role::Viewer).post("/v1/projects", &json!({})).await.is(403, "forbidden_role");
        assert_eq!(records(&owner, "project.create").await.len(), refused + 1);
        query.post("/v1/apikeys", &json!({})).await.is(403, "scope_forbidden");
        app.advance(60);
        query.post("/v1/projects", &json!({})).await.is(403, "scope_forbidden");
        assert_eq!(records(&owner, "project.create").await.len(), refused + 2);
    }

    async fn audit_log_is_filtered_and_paged(app: TestApp) {
        let owner = app.session_as("o", Role::Owner);
        for n in 0..5 {
            app.advance(1);
            owner.post("/v1/projects", &json!({"name": format!("p{n}")})).await.ok();
        }
        let mut seen = Vec::new();
        let mut path = "/v1/audit-log?action=project.create&limit=2".to_owned();
        loop {
            let page = owner.get(&path).await.ok();
            seen.extend(page["audit_log"].as_array().unwrap().iter().map(|it| it["detail"]["name"].as_str().unwrap().to_owned()));
            let Some(next) = page["next_cursor"].as_str() else { break };
            path = format!("/v1/audit-log?action=project.create&limit=2&cursor={next}");
            owner.get(&format!("/v1/audit-log?action=api_key.create&cursor={next}")).await.is(400, "invalid_cursor");
        }
        assert_eq!(seen, ["p4", "p3", "p2", "p1", "p0"]);
        let between = "/v1/audit-log?actor=o&from=2026-06-15T12:00:02Z&to=2026-06-15T12:00:03Z";
        assert_eq!(owner.get(between).await.ok()["audit_log"].as_array().unwrap().len(), 2);
        owner.get("/v1/audit-log?from=2026-06-15T12:00:03Z&to=2026-06-15T12:00:02Z").await.is(400, "invalid_query");
        let (other, _) = app.other_tenant(Plan::Enterprise).await;
        let theirs = app.session_of(other, Role::Owner).get("/v1/audit-log?action=project.create").await.ok();
        assert_eq!(theirs["audit_log"], json!([]));
    }
}

/// Changes of a role are recorded at most as often as the rate limit allows requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn role_changes_are_recorded_within_rate_limit() {
    let app = TestApp::with(On::Sqlite, Plan::Starter, &[]).await;
    let owner = app.session(Role::Owner);
    owner.get("/v1/me").await.ok();
    let (viewer, member) = (app.session_as("v", Role::Viewer), app.session_as("v", Role::Member));
    while viewer.get("/v1/projects").await.status != 429 {}
    let noted = || async {
        use sea_orm::{EntityTrait, PaginatorTrait};
        entities::audit_record::Entity::find().count(&app.app.db.write).await.unwrap()
    };
    let before = noted().await;
    for _ in 0..20 {
        viewer.get("/v1/projects").await.is(429, "rate_limited");
        member.get("/v1/projects").await.is(429, "rate_limited");
    }
    assert_eq!(noted().await, before);
    app.stop().await;
}
