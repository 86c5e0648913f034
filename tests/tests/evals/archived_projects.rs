//! Eval rules of an archived project.

use api::Role;
use serde_json::json;
use tests::on_both_databases;

use super::{create_rule, decision, evaluate, evaluations, timed};

on_both_databases! {
    /// An archived project receives no traces. Its evaluations are kept and can still be requested, and the
    /// rule continues when the project is unarchived.
    async fn rules_of_archived_project_resume_after_unarchiving(app: TestApp) {
        let (key, owner) = (app.full_key(), app.session(Role::Owner));
        let rule = create_rule(app, json!({})).await;
        let (path, project) = (format!("/v1/eval-rules/{rule}"), format!("/v1/projects/{}", app.project));
        key.post("/v1/projects", &json!({"name": "second"})).await.ok();
        app.advance(1);
        let before = timed(&key, 500).await;
        app.drain().await;
        owner.post(&format!("{project}/archive"), &json!({})).await.ok();
        key.post("/v1/ingest", &json!({"latency_ms": 1})).await.is(403, "error.project.archived");
        app.drain().await;
        let kept = key.get(&path).await.ok();
        assert_eq!((&kept["enabled"], &key.get("/v1/eval-rules").await.ok()["eval_rules"]), (&json!(true), &json!([kept])));
        assert_eq!(evaluations(&key, &format!("rule_id={rule}")).await.len(), 1);
        assert_eq!(evaluate(app, &before, "latency_threshold", json!({"max_latency_ms": 500})).await["label"], "pass");
        owner.post(&format!("{project}/unarchive"), &json!({})).await.ok();
        app.advance(1);
        let after = timed(&key, 50).await;
        app.drain().await;
        assert_eq!(decision(&key, &rule, &after).await["decision"], "queued");
        assert_eq!(evaluations(&key, &format!("rule_id={rule}&label=pass")).await.len(), 1);
    }
}
