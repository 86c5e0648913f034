//! Data with a limited lifetime: bulk runs, and the remains of deleted rules and evaluators.

use api::{Plan, Role};
use entities::{evaluator, rule_decision};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use serde_json::json;
use server::housekeeping;
use tests::{TestApp, on_both_databases};

use super::{create_rule, decision, evaluations, timed};

/// Returns the number of rule decisions.
async fn count_decisions(app: &TestApp) -> usize {
    let query = rule_decision::Entity::find().filter(rule_decision::Column::TenantId.eq(app.tenant));
    query.all(&app.app.db.write).await.unwrap().len()
}

on_both_databases! {
    /// A run is kept while its progress can be requested, and as long as evaluations need its options.
    async fn finished_bulk_evaluation_is_purged_after_30_days(app: TestApp) {
        let key = app.full_key();
        timed(&key, 1).await;
        let ask = json!({"metric_name": "latency_threshold", "config": {"max_latency_ms": 4}});
        let mut paths = Vec::new();
        for drained in [true, false] {
            let begun = key.post("/v1/eval/bulk", &ask).await.ok();
            paths.push(format!("/v1/eval/bulk/{}", begun["bulk_id"].as_str().unwrap()));
            if drained {
                app.drain().await;
            }
        }
        app.advance(29 * 86_400);
        housekeeping::run_round(&app.app, server::features::ALL).await.unwrap();
        assert_eq!(key.get(&paths[0]).await.status, 200);
        app.advance(2 * 86_400);
        housekeeping::run_round(&app.app, server::features::ALL).await.unwrap();
        key.get(&paths[0]).await.is(404, "not_found");
        assert_eq!(key.get(&paths[1]).await.ok()["status"], "running");
        app.drain().await;
        let rows = evaluations(&key, "status=complete").await;
        assert_eq!((rows.len(), &rows[0]["label"]), (2, &json!("pass")));
        housekeeping::run_round(&app.app, server::features::ALL).await.unwrap();
        key.get(&paths[1]).await.is(404, "not_found");
    }

    /// Only the evaluations of a deleted rule remain; the decisions of other rules are unaffected.
    async fn decisions_of_deleted_rule_are_purged(app: TestApp) {
        let key = app.full_key();
        let mut rules = Vec::new();
        for _ in 0..5 {
            rules.push(create_rule(app, json!({})).await);
            app.advance(1);
        }
        // The last two rules exceed the limit of the plan.
        app.set_plan(Plan::Starter).await;
        let id = timed(&key, 1).await;
        app.drain().await;
        assert_eq!(count_decisions(app).await, 2);
        key.delete(&format!("/v1/eval-rules/{}", rules[4])).await.ok();
        app.drain().await;
        assert_eq!(count_decisions(app).await, 2, "decisions are purged while another process may use the rule");
        app.advance(60);
        app.drain().await;
        assert_eq!(count_decisions(app).await, 1);
        assert_eq!(decision(&key, &rules[3], &id).await["decision"], "paused");
        assert_eq!(evaluations(&key, "").await.len(), 3);
    }

    /// Only the version number of a deleted evaluator remains.
    async fn definition_of_deleted_evaluator_is_purged(app: TestApp) {
        let key = app.full_key();
        let own = json!({"name": "short", "evaluator_type": "rule", "checks": [{"kind": "length", "max_words": 3}]});
        key.post("/v1/evaluators", &own).await.ok();
        app.session(Role::Owner).delete("/v1/evaluators/short").await.ok();
        let query = evaluator::Entity::find().filter(evaluator::Column::TenantId.eq(app.tenant));
        let row = query.one(&app.app.db.write).await.unwrap().unwrap();
        assert_eq!((row.name.as_str(), row.definition.as_str(), row.version), ("short", "{}", 1));
        assert_eq!(key.post("/v1/evaluators", &own).await.ok()["version"], 2);
    }
}
