//! The status of clusters.

use serde_json::json;
use tests::on_both_databases;

use super::*;

on_both_databases! {
    async fn resolved_cluster_reopens_when_it_recurs(app: TestApp) {
        fail(app, TIMEOUT_MESSAGE).await;
        let id = only_cluster(app).await["id"].clone();
        app.advance(60);
        // This failure is stored before the cluster is resolved, and its job runs afterwards.
        ingest(&app.full_key(), TIMEOUT_MESSAGE).await;
        app.advance(60);
        let resolved = set_status(app, &id, "resolved").await;
        assert_eq!((&resolved["status"], &resolved["resolved_at"]), (&json!("resolved"), &json!("2026-06-15T12:02:00.000000Z")));
        app.drain().await;
        let same = cluster(app, &id).await;
        assert_eq!((&same["status"], &same["count"]), (&json!("resolved"), &json!(2)));
        assert_eq!(clusters(app, "status=resolved").await.len(), 1);
        app.advance(60);
        fail(app, TIMEOUT_MESSAGE).await;
        let open = cluster(app, &id).await;
        assert_eq!((&open["status"], &open["resolved_at"], &open["count"]), (&json!("open"), &Value::Null, &json!(3)));
        assert_eq!((clusters(app, "status=resolved").await.len(), clusters(app, "status=open").await.len()), (0, 1));
    }

    /// A muted cluster counts, and fires no rule.
    async fn muted_cluster_stays_muted_and_fires_nothing(app: TestApp) {
        subscribe(app, app.tenant).await;
        fail(app, TIMEOUT_MESSAGE).await;
        let id = only_cluster(app).await["id"].clone();
        assert_eq!(events(app).await.len(), 1);
        set_status(app, &id, "muted").await;
        app.advance(60);
        fail(app, TIMEOUT_MESSAGE).await;
        let muted = cluster(app, &id).await;
        assert_eq!((&muted["status"], &muted["count"], &muted["resolved_at"]), (&json!("muted"), &json!(2), &Value::Null));
        assert_eq!(events(app).await.len(), 1);
        // Another cluster of the same trace fires.
        let spans = json!([{"name": "call", "error": TIMEOUT_MESSAGE}, {"name": "call", "error": CONTEXT_LENGTH_MESSAGE}]);
        ingest_item(&app.full_key(), json!({"name": "both", "spans": spans})).await;
        app.drain().await;
        let sent = events(app).await;
        assert_eq!((sent.len(), &sent[1]["data"]["failure"]["type"]), (2, &json!("context_length")));
        set_status(app, &id, "open").await;
        fail(app, TIMEOUT_MESSAGE).await;
        assert_eq!(events(app).await.len(), 3);
    }

    async fn change_of_status_is_audited(app: TestApp) {
        fail(app, TIMEOUT_MESSAGE).await;
        let id = only_cluster(app).await["id"].clone();
        set_status(app, &id, "muted").await;
        // Setting the same status again changes nothing.
        set_status(app, &id, "muted").await;
        let path = format!("/v1/failures/clusters/{}", id.as_str().unwrap());
        patch(&app.session(Role::Viewer), &path, &json!({"status": "open"})).await.is(403, "forbidden_role");
        let log = app.full_key().get("/v1/audit-log?action=failure_cluster.update").await.ok();
        let results: Vec<&Value> = log["audit_log"].as_array().unwrap().iter().map(|it| &it["result"]).collect();
        assert_eq!(results, ["forbidden_role", "ok"]);
    }

    async fn invalid_status_is_rejected(app: TestApp) {
        fail(app, TIMEOUT_MESSAGE).await;
        let path = format!("/v1/failures/clusters/{}", only_cluster(app).await["id"].as_str().unwrap());
        let member = app.session(Role::Member);
        for (body, status, code) in [(json!({"status": "gone"}), 422, "validation_failed"), (json!({"status": 7}), 400, "invalid_body"),
            (json!({}), 400, "invalid_body"), (json!({"status": null}), 400, "invalid_body"), (json!([]), 400, "invalid_body")] {
            patch(&member, &path, &body).await.is(status, code);
        }
        patch(&member, "/v1/failures/clusters/x", &json!({"status": "open"})).await.is(400, "invalid_query");
        assert_eq!(only_cluster(app).await["status"], "open");
    }
}
