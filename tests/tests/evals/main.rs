//! Evaluations, eval rules and evaluators over HTTP, on both databases, without judges. The suite `judge`
//! tests judges.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod archived_projects;
mod bulk;
mod bulk_filters;
mod bulk_rules;
mod bulk_runs;
mod changed_rules;
mod code_evaluators;
mod custom_checks;
mod evaluators;
mod external;
mod external_attributes;
mod immediate;
mod lost_workers;
mod purge;
mod requested_evaluations;
mod rule_decisions;
mod rules;
mod sample_rate;

use serde_json::{Value, json};
use tests::{Caller, Reply, TestApp};

/// Stores a trace. Returns its id.
async fn trace(key: &Caller, item: Value) -> String {
    key.post("/v1/ingest", &item).await.ok()["id"].as_str().unwrap().to_owned()
}

/// Stores a trace with this latency in milliseconds.
async fn timed(key: &Caller, latency_ms: i64) -> String {
    trace(key, json!({"name": "t", "output": "Done.", "latency_ms": latency_ms})).await
}

/// Returns the body of a rule with `latency_threshold` in the tenant's first project, with more fields.
fn rule(app: &TestApp, more: Value) -> Value {
    let mut body = json!({"project_id": app.project, "metric_name": "latency_threshold", "evaluator_type": "rule",
        "config": {"max_latency_ms": 100}});
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    body
}

/// Creates a rule. Returns its id.
async fn create_rule(app: &TestApp, more: Value) -> String {
    let reply = app.full_key().post("/v1/eval-rules", &rule(app, more)).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.ok()["id"].as_str().unwrap().to_owned()
}

/// Returns the evaluations of a list, newest first.
async fn evaluations(key: &Caller, query: &str) -> Vec<Value> {
    key.get(&format!("/v1/eval?limit=200&{query}")).await.ok()["evaluations"].as_array().unwrap().clone()
}

/// Returns the decision of a rule on a trace.
async fn decision(key: &Caller, rule: &str, trace: &str) -> Value {
    let list = key.get(&format!("/v1/eval-rules/{rule}/decisions?trace_id={trace}")).await.ok();
    assert_eq!((list["decisions"].as_array().unwrap().len(), &list["has_more"]), (1, &json!(false)));
    list["decisions"][0].clone()
}

/// Evaluates a trace with an evaluator. Returns the evaluation.
async fn evaluate(app: &TestApp, trace: &str, metric: &str, config: Value) -> Value {
    let key = app.full_key();
    let body = json!({"trace_id": trace, "metric_name": metric, "config": config});
    let reply = key.post("/v1/eval", &body).await;
    assert_eq!(reply.status, 202, "{metric}: {}", reply.text());
    app.drain().await;
    key.get(&format!("/v1/eval/{}", reply.ok()["id"].as_str().unwrap())).await.ok()
}

/// Sends a `PATCH` request.
async fn patch(caller: &Caller, path: &str, change: &Value) -> Reply {
    caller.send(caller.request(reqwest::Method::PATCH, path).json(change)).await
}
