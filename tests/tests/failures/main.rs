//! Failures, failure clusters and failure rules over HTTP, on both databases.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cluster_status;
mod clusters;
mod concurrency;
mod events;
mod expiry;
mod lists;
mod plans;
mod recording;
mod regressions;
mod rule_changes;
mod rules;
mod scores;

use api::{Role, webhook::EventType};
use entities::webhook_event;
use sea_orm::{EntityTrait, QueryOrder};
use serde_json::{Value, json};
use tests::{Caller, Reply, TestApp};
use uuid::Uuid;

/// A message of each of the four failure types.
const TIMEOUT_MESSAGE: &str = "Request timed out.";
const RATE_LIMIT_MESSAGE: &str =
    "Rate limit reached for gpt-4o in organization org-abc on tokens per min (TPM): Limit 30000";
const INVALID_RESPONSE_MESSAGE: &str = "Failed to parse the response: invalid JSON";
const CONTEXT_LENGTH_MESSAGE: &str =
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.";
/// A message of type `other`.
const OTHER_MESSAGE: &str = "the disk is on fire";

/// Stores a trace with one failing span, without running jobs. Returns its id.
async fn ingest(key: &Caller, message: &str) -> String {
    ingest_item(key, json!({"name": "trip", "spans": [{"name": "call", "type": "llm", "model": "gpt-4o", "error": message}]})).await
}

/// Stores a trace. Returns its id.
async fn ingest_item(key: &Caller, item: Value) -> String {
    key.post("/v1/ingest", &item).await.ok()["id"].as_str().unwrap().to_owned()
}

/// Stores a trace with one failing span, and runs all jobs. Returns its id.
async fn fail(app: &TestApp, message: &str) -> String {
    let id = ingest(&app.full_key(), message).await;
    app.drain().await;
    id
}

/// Returns the failures of a list, newest first.
async fn failures(app: &TestApp, query: &str) -> Vec<Value> {
    let list = app.session(Role::Viewer).get(&format!("/v1/failures?limit=200&{query}")).await.ok();
    list["failures"].as_array().unwrap().clone()
}

/// Returns the clusters of a list, last seen first.
async fn clusters(app: &TestApp, query: &str) -> Vec<Value> {
    let list = app.session(Role::Viewer).get(&format!("/v1/failures/clusters?limit=200&{query}")).await.ok();
    list["clusters"].as_array().unwrap().clone()
}

/// Returns the only cluster.
async fn only_cluster(app: &TestApp) -> Value {
    let mut all = clusters(app, "").await;
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// Returns a cluster in detail.
async fn cluster(app: &TestApp, id: &Value) -> Value {
    app.session(Role::Viewer).get(&format!("/v1/failures/clusters/{}", id.as_str().unwrap())).await.ok()
}

/// Changes the status of a cluster.
async fn set_status(app: &TestApp, id: &Value, status: &str) -> Value {
    let path = format!("/v1/failures/clusters/{}", id.as_str().unwrap());
    patch(&app.session(Role::Member), &path, &json!({"status": status})).await.ok()
}

/// Sends a `PATCH` request.
async fn patch(caller: &Caller, path: &str, change: &Value) -> Reply {
    caller.send(caller.request(reqwest::Method::PATCH, path).json(change)).await
}

/// Deletes all failure rules of the tenant.
async fn without_rules(app: &TestApp) {
    let key = app.full_key();
    let list = key.get("/v1/failure-rules?limit=200").await.ok();
    for rule in list["failure_rules"].as_array().unwrap() {
        assert_eq!(
            key.delete(&format!("/v1/failure-rules/{}", rule["id"].as_str().unwrap())).await.status,
            204
        );
    }
}

/// Creates a failure rule with these fields. Returns its id.
async fn rule(app: &TestApp, mut fields: Value) -> String {
    let body = fields.as_object_mut().unwrap();
    body.entry("name").or_insert_with(|| json!("rule"));
    let reply = app.full_key().post("/v1/failure-rules", &fields).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.ok()["id"].as_str().unwrap().to_owned()
}

/// Creates a webhook of a tenant for `failure.detected`. Its host name no longer resolves, so deliveries fail
/// immediately: these tests read the events that are stored for it.
async fn subscribe(app: &TestApp, tenant: Uuid) {
    app.resolver.set("receiver.example", &["93.184.216.34".parse().unwrap()]);
    let body = json!({"url": "https://receiver.example/", "secret": "0123456789abcdef", "events": [EventType::FailureDetected]});
    app.session_of(tenant, Role::Owner).post("/v1/webhooks", &body).await.ok();
    app.resolver.set("receiver.example", &[]);
}

/// Returns the payloads of all stored events, oldest first.
async fn events(app: &TestApp) -> Vec<Value> {
    let query = webhook_event::Entity::find().order_by_asc(webhook_event::Column::Id);
    let rows = query.all(&app.app.db.write).await.unwrap();
    rows.iter().map(|it| serde_json::from_str(&it.payload).unwrap()).collect()
}

/// Returns the sum of a cluster's trend.
fn trend_sum(cluster: &Value) -> i64 {
    cluster["trend"].as_array().unwrap().iter().map(|it| it["count"].as_i64().unwrap()).sum()
}
