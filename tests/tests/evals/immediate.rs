//! Code evaluations of rules that are executed before their traces become ready, and those that are executed later.

use entities::job;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, sea_query::Expr};
use serde_json::{Value, json};
use tests::{TestApp, on_both_databases};

use super::{create_rule, evaluations, timed, trace};

/// Returns the number of jobs that ran, and the status of the evaluations of a trace.
async fn run(app: &TestApp, trace: &str) -> (usize, Vec<Value>) {
    let jobs = app.drain().await;
    let rows = evaluations(&app.full_key(), &format!("trace_id={trace}")).await;
    (jobs, rows.into_iter().map(|it| it["status"].clone()).collect())
}

/// Creates a rule whose evaluator reaches no verdict on short texts.
async fn create_undecided_rule(app: &TestApp) {
    let undecided = json!({"metric_name": "language_conformance", "config": {"language": "en"}});
    create_rule(app, undecided).await;
}

on_both_databases! {
    /// The job that marks the traces of two requests as ready is the only one.
    async fn evaluations_end_in_the_job_that_marks_traces_as_ready(app: TestApp) {
        create_rule(app, json!({})).await;
        create_undecided_rule(app).await;
        let key = app.full_key();
        let first = timed(&key, 5).await;
        app.advance(1);
        let second = timed(&key, 500).await;
        let (jobs, mut ended) = run(app, &second).await;
        ended.sort_by_key(Value::to_string);
        assert_eq!((jobs, ended), (1, vec![json!("complete"), json!("failed")]));
        let of_first = evaluations(&key, &format!("trace_id={first}&status=complete")).await;
        assert_eq!((of_first.len(), &of_first[0]["score"]), (1, &json!(1.0)), "{of_first:?}");
        assert_eq!(of_first[0]["created_at"], of_first[0]["completed_at"], "{of_first:?}");
        assert!(of_first[0]["reasoning"].is_string(), "{of_first:?}");
    }

    /// After an attempt whose worker was lost, evaluations have jobs of their own, which count lost workers.
    async fn evaluations_are_executed_later_after_a_lost_worker(app: TestApp) {
        create_rule(app, json!({})).await;
        let id = timed(&app.full_key(), 5).await;
        job::Entity::update_many()
            .col_expr(job::Column::Attempts, Expr::value(1))
            .filter(job::Column::TenantId.eq(app.tenant))
            .exec(&app.app.db.write)
            .await
            .unwrap();
        assert_eq!(run(app, &id).await, (2, vec![json!("complete")]));
    }

    async fn evaluations_are_executed_later_while_the_tenant_has_slow_ones(app: TestApp) {
        create_rule(app, json!({})).await;
        let key = app.full_key();
        app.app.code_runner.pause_short_tasks(app.tenant);
        let id = timed(&key, 5).await;
        assert_eq!(run(app, &id).await, (2, vec![json!("complete")]));
        app.advance(60);
        let id = timed(&key, 5).await;
        assert_eq!(run(app, &id).await, (1, vec![json!("complete")]));
    }

    /// Traces of many spans, or with texts of many megabytes, are read alone.
    async fn evaluations_of_large_traces_are_executed_later(app: TestApp) {
        create_rule(app, json!({})).await;
        let key = app.full_key();
        let spans: Vec<Value> = (0..129).map(|it| json!({"name": format!("step {it}")})).collect();
        let long = trace(&key, json!({"latency_ms": 5, "spans": spans})).await;
        assert_eq!(run(app, &long).await, (2, vec![json!("complete")]));
        let text = "word ".repeat(1_000_000);
        let large = trace(&key, json!({"latency_ms": 5, "output": text})).await;
        assert_eq!(run(app, &large).await, (2, vec![json!("complete")]));
    }
}
