//! Failure rules that fire on low scores.

use serde_json::json;
use tests::on_both_databases;

use super::*;

/// Evaluates the latency of a trace, and runs all jobs.
async fn evaluate(app: &TestApp, trace: &str, max_latency_ms: i64) {
    let body = json!({"trace_id": trace, "metric_name": "latency_threshold", "evaluator_type": "rule",
        "config": {"max_latency_ms": max_latency_ms}});
    assert_eq!(app.full_key().post("/v1/eval", &body).await.status, 202);
    app.drain().await;
}

async fn timed(app: &TestApp, latency_ms: i64) -> String {
    ingest_item(&app.full_key(), json!({"name": "t", "latency_ms": latency_ms})).await
}

on_both_databases! {
    async fn low_score_fires_a_rule_once_per_trace(app: TestApp) {
        subscribe(app, app.tenant).await;
        rule(app, json!({"metric_name": "latency_threshold", "max_score": 0.5})).await;
        let (slow, fast) = (timed(app, 900).await, timed(app, 10).await);
        evaluate(app, &fast, 100).await;
        assert_eq!(events(app).await.len(), 0);
        evaluate(app, &slow, 100).await;
        evaluate(app, &slow, 50).await;
        let sent = events(app).await;
        assert_eq!(sent.len(), 1, "{sent:?}");
        let data = &sent[0]["data"];
        let evaluations = app.full_key().get(&format!("/v1/eval?trace_id={slow}")).await.ok();
        let first = evaluations["evaluations"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(data["evaluation"], json!({"id": first["id"], "metric_name": "latency_threshold", "score": first["score"], "label": "fail"}));
        assert_eq!((&data["failure"], &data["trace"]["id"], &data["rules"][0]["name"]), (&Value::Null, &json!(slow), &json!("rule")));
    }

    /// A score equal to the rule's bound matches, and the rule's filter and project apply.
    async fn score_rule_matches_filter_and_bound(app: TestApp) {
        subscribe(app, app.tenant).await;
        without_rules(app).await;
        let trace = timed(app, 900).await;
        evaluate(app, &trace, 100).await;
        let list = app.full_key().get("/v1/eval").await.ok();
        let score = list["evaluations"][0]["score"].as_f64().unwrap();
        rule(app, json!({"metric_name": "latency_threshold", "max_score": score - 0.01})).await;
        rule(app, json!({"metric_name": "latency_threshold", "max_score": score, "filter": {"name": "other"}})).await;
        rule(app, json!({"metric_name": "cost_threshold", "max_score": score})).await;
        evaluate(app, &trace, 100).await;
        assert_eq!(events(app).await.len(), 0);
        rule(app, json!({"name": "fires", "metric_name": "latency_threshold", "max_score": score, "project_id": app.project})).await;
        evaluate(app, &trace, 100).await;
        let sent = events(app).await;
        assert_eq!((sent.len(), &sent[0]["data"]["rules"][0]["name"]), (1, &json!("fires")));
    }

    /// Without a rule for the metric, an evaluation causes no job.
    async fn score_without_rule_costs_nothing(app: TestApp) {
        let trace = timed(app, 900).await;
        let run = async |config: Value| {
            let body = json!({"trace_id": trace, "metric_name": "latency_threshold", "evaluator_type": "rule", "config": config});
            app.full_key().post("/v1/eval", &body).await.ok();
            app.drain().await
        };
        app.drain().await;
        let without = run(json!({"max_latency_ms": 100})).await;
        rule(app, json!({"metric_name": "latency_threshold", "max_score": 0.5})).await;
        assert_eq!(run(json!({"max_latency_ms": 100})).await, without + 1);
        assert_eq!(run(json!({"max_latency_ms": 10_000})).await, without);
    }

    /// Evaluations sent by a client fire no rule.
    async fn external_evaluation_fires_no_rule(app: TestApp) {
        subscribe(app, app.tenant).await;
        rule(app, json!({"metric_name": "toxicity", "max_score": 1.0})).await;
        let span = tests::otlp::Span::new(0x33, 1, "evaluate", tests::app::TEST_START_MICROS)
            .with("gen_ai.evaluation.name", "toxicity").with("gen_ai.evaluation.score.value", 0.1);
        app.full_key().post("/v1/otlp/traces", &tests::otlp::request([&span])).await.ok();
        app.advance(60);
        app.drain().await;
        let list = app.full_key().get("/v1/eval?metric_name=toxicity").await.ok();
        assert_eq!((list["evaluations"].as_array().unwrap().len(), events(app).await.len()), (1, 0));
    }
}
