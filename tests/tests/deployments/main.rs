//! Prompt deployments over HTTP, on both databases: creation, tests, decisions, the watch, and the served prompt.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "providers and concurrent requests run beside the test")]

mod access;
mod autoship;
mod creation;
mod decisions;
mod lists;
mod live_tests;
mod provider;
mod replay;
mod serving;
mod source_actions;
mod watch;

use api::{Role, webhook::EventType};
use entities::webhook_event;
use sea_orm::{EntityTrait, QueryOrder};
use serde_json::{Value, json};
use tests::{Reply, TestApp};

/// The metric of the tests: 1 for an output with the word "good", else 0.
const METRIC_NAME: &str = "good_output";
/// The prompt of the tests.
const PROMPT_NAME: &str = "greeting";

/// Sends a request for a deployment of [`PROMPT_NAME`] with these fields, as a member.
async fn create(app: &TestApp, fields: Value) -> Reply {
    let mut body =
        json!({"project_id": app.project, "prompt_name": PROMPT_NAME, "template": "Greet the user."});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    app.session(Role::Member).post("/v1/prompts/deployments", &body).await
}

/// Creates a deployment with these fields.
async fn created(app: &TestApp, fields: Value) -> Value {
    let reply = create(app, fields).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.json()
}

/// Creates a deployment that is tested with at least `min_samples` scores of each arm.
async fn tested(app: &TestApp, min_samples: usize) -> Value {
    created(
        app,
        json!({"template": "Greet warmly.", "ab": {"metric_name": METRIC_NAME, "min_samples": min_samples}}),
    )
    .await
}

/// Takes a decision about a deployment, as an owner: `approve`, `reject` or `rollback`.
async fn decide(app: &TestApp, deployment: &Value, decision: &str) -> Reply {
    let path = format!("/v1/prompts/deployments/{}/{decision}", id(deployment));
    app.session(Role::Owner).post(&path, &json!({})).await
}

/// Creates a version and ships it.
async fn shipped(app: &TestApp, fields: Value) -> Value {
    let made = created(app, fields).await;
    assert_eq!(made["status"], "ab_passed", "{made}");
    decide(app, &made, "approve").await.ok()
}

/// Returns the current state of a deployment.
async fn shown(app: &TestApp, deployment: &Value) -> Value {
    app.session(Role::Viewer).get(&format!("/v1/prompts/deployments/{}", id(deployment))).await.ok()
}

/// Returns the current status of a deployment.
async fn status(app: &TestApp, deployment: &Value) -> String {
    shown(app, deployment).await["status"].as_str().unwrap().to_owned()
}

/// Returns the prompt that an application gets.
async fn served(app: &TestApp, query: &str) -> Value {
    app.full_key().get(&format!("/v1/prompts/{PROMPT_NAME}?{query}")).await.ok()
}

fn id(deployment: &Value) -> &str {
    deployment["id"].as_str().unwrap()
}

/// Creates the evaluator of [`METRIC_NAME`] and a rule that evaluates each trace by it.
async fn evaluate_traces(app: &TestApp) {
    create_metric(app).await;
    let rule = json!({"project_id": app.project, "metric_name": METRIC_NAME, "evaluator_type": "rule"});
    assert_eq!(app.full_key().post("/v1/eval-rules", &rule).await.status, 201);
}

/// Creates the evaluator of [`METRIC_NAME`].
async fn create_metric(app: &TestApp) {
    let checks = json!([{"kind": "contains", "text": "good"}]);
    let body = json!({"name": METRIC_NAME, "evaluator_type": "rule", "checks": checks, "combine": "all"});
    assert_eq!(app.full_key().post("/v1/evaluators", &body).await.status, 201);
}

/// Stores traces of a version with these outputs. Returns their IDs.
async fn ingest(app: &TestApp, version: i64, outputs: &[&str]) -> Vec<String> {
    let tags = json!({"prompt.name": PROMPT_NAME, "prompt.version": version.to_string()});
    let mut ids = Vec::new();
    for output in outputs {
        let item = json!({"name": "chat", "input": "Hi", "output": output, "tags": tags});
        ids.push(app.full_key().post("/v1/ingest", &item).await.ok()["id"].as_str().unwrap().to_owned());
    }
    ids
}

/// Stores traces of a version with these outputs, and runs the jobs that evaluate them and count the scores.
async fn scores(app: &TestApp, version: i64, outputs: &[&str]) -> Vec<String> {
    let ids = ingest(app, version, outputs).await;
    app.advance(60);
    app.drain().await;
    ids
}

/// Returns outputs: `good` with the score 1, and `bad` with the score 0.
fn outputs(good: usize, bad: usize) -> Vec<&'static str> {
    [vec!["good"; good], vec!["poor"; bad]].concat()
}

/// Creates a webhook for these events. Its name has no address any more, so that deliveries fail at once.
async fn subscribe(app: &TestApp, events: &[EventType]) {
    app.resolver.set("receiver.example", &["93.184.216.34".parse().unwrap()]);
    let body = json!({"url": "https://receiver.example/", "secret": "0123456789abcdef", "events": events});
    app.session(Role::Owner).post("/v1/webhooks", &body).await.ok();
    app.resolver.set("receiver.example", &[]);
}

/// Returns the payloads of all stored events, oldest first.
async fn events(app: &TestApp) -> Vec<Value> {
    let query = webhook_event::Entity::find().order_by_asc(webhook_event::Column::Id);
    let rows = query.all(&app.app.db.write).await.unwrap();
    rows.iter().map(|it| serde_json::from_str(&it.payload).unwrap()).collect()
}

/// Returns the names of the recorded actions about prompt deployments, oldest first.
async fn audited(app: &TestApp) -> Vec<String> {
    let list = app.session(Role::Owner).get("/v1/audit-log?limit=200").await.ok();
    let records = list["audit_log"].as_array().unwrap().iter();
    let names = records.map(|it| it["action"].as_str().unwrap().to_owned());
    let mut names: Vec<String> = names.filter(|it| it.starts_with("prompt_deployment.")).collect();
    names.reverse();
    names
}

/// Changes the project.
async fn change_project(app: &TestApp, change: Value) {
    let owner = app.session(Role::Owner);
    let request =
        owner.request(reqwest::Method::PATCH, &format!("/v1/projects/{}", app.project)).json(&change);
    owner.send(request).await.ok();
}
