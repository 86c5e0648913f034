//! The monthly quota of traces.

use api::Plan;
use futures::future::join_all;
use serde_json::{Value, json};
use tests::{Caller, On, TestApp};

const TRACES_PER_MONTH: i64 = 50_000;

/// Returns this month's use of traces according to `/v1/me`.
async fn used_quota(key: &Caller) -> i64 {
    let me = key.get("/v1/me").await.ok();
    assert_eq!(me["limits"]["traces_per_month"], TRACES_PER_MONTH);
    me["usage"]["traces"].as_i64().unwrap()
}

async fn stored_traces(key: &Caller) -> usize {
    key.get("/v1/traces?limit=200").await.ok()["traces"].as_array().unwrap().len()
}

/// Builds an OTLP request in JSON with one span for each of these traces.
fn otlp(traces: &[u128], span: u8) -> Value {
    let spans: Vec<Value> = traces
        .iter()
        .map(|it| {
            json!({"traceId": format!("{it:032x}"), "spanId": format!("{span:016x}"), "name": "s",
                "startTimeUnixNano": "1781524800000000000", "endTimeUnixNano": "1781524801000000000"})
        })
        .collect();
    json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
}

async fn on(database: On, test: impl AsyncFnOnce(&TestApp)) {
    let app = TestApp::with(database, Plan::Starter, &[]).await;
    test(&app).await;
    app.stop().await;
}

macro_rules! on_both {
    ($($name:ident)+) => { $(mod $name {
        use super::*;
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn sqlite() { on(On::Sqlite, super::$name).await; }
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn postgres() { on(On::Postgres, super::$name).await; }
    })+ };
}

on_both! { traces_beyond_quota_are_rejected_until_next_month batch_beyond_quota_is_stored_up_to_the_limit spans_of_stored_traces_use_no_quota concurrent_writers_never_exceed_the_quota }

async fn traces_beyond_quota_are_rejected_until_next_month(app: &TestApp) {
    let key = app.full_key();
    key.post("/v1/ingest", &json!({"id": "a"})).await.ok();
    key.post("/v1/ingest", &json!({"id": "a"})).await.is(409, "conflict");
    assert_eq!(used_quota(&key).await, 1, "a duplicate uses no quota");
    key.post("/v1/ingest", &json!({"latency_ms": -1})).await.is(422, "validation_failed");
    assert_eq!(used_quota(&key).await, 1, "a rejected item uses no quota");

    app.advance(31 * 86_400);
    assert_eq!(used_quota(&key).await, 0, "July has its own quota");
    app.use_traces(TRACES_PER_MONTH - 1).await;
    key.post("/v1/ingest", &json!({"id": "b"})).await.ok();
    key.post("/v1/ingest", &json!({"id": "c"})).await.is(402, "ingest_quota_exceeded");
    key.post("/v1/ingest/batch", &json!({"traces": [{"id": "c"}, {"id": "d"}]}))
        .await
        .is(402, "ingest_quota_exceeded");
    key.post("/v1/otlp/traces", &otlp(&[1], 1)).await.is(402, "ingest_quota_exceeded");
    key.post("/v1/ingest", &json!({"id": "b"})).await.is(409, "conflict");
    key.post("/v1/ingest/batch", &json!({"traces": []})).await.ok();
    assert_eq!((used_quota(&key).await, stored_traces(&key).await), (TRACES_PER_MONTH, 2));

    app.set_plan(Plan::Enterprise).await;
    key.post("/v1/ingest", &json!({"id": "c"})).await.ok();
    let me = key.get("/v1/me").await.ok();
    assert_eq!(
        (&me["limits"]["traces_per_month"], &me["usage"]["traces"]),
        (&Value::Null, &json!(TRACES_PER_MONTH + 1))
    );
    app.set_plan(Plan::Starter).await;
    key.post("/v1/ingest", &json!({"id": "d"})).await.is(402, "ingest_quota_exceeded");
}

async fn batch_beyond_quota_is_stored_up_to_the_limit(app: &TestApp) {
    let key = app.full_key();
    key.post("/v1/ingest", &json!({"id": "known"})).await.ok();
    app.advance(31 * 86_400);
    app.use_traces(TRACES_PER_MONTH - 2).await;
    let items = json!({"traces": [
        {"id": "known"}, {"id": "one"}, {"latency_ms": "x"}, {"id": "two"}, {"id": "three"}, {"id": "three"}, {"id": "one"}]});
    let response = key.post("/v1/ingest/batch", &items).await.ok();
    let outcomes: Vec<_> = response["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["status"].as_str().unwrap(), it["code"].as_str().unwrap_or_default()))
        .collect();
    let refused = ("rejected", "ingest_quota_exceeded");
    assert_eq!(
        outcomes,
        [
            ("duplicate", ""),
            ("accepted", ""),
            ("rejected", "invalid_body"),
            ("accepted", ""),
            refused,
            refused,
            ("duplicate", "")
        ]
    );
    assert_eq!((&response["accepted"], &response["rejected"]), (&json!(2), &json!(3)));
    assert_eq!((used_quota(&key).await, stored_traces(&key).await), (TRACES_PER_MONTH, 3));
}

async fn spans_of_stored_traces_use_no_quota(app: &TestApp) {
    let key = app.full_key();
    app.use_traces(TRACES_PER_MONTH - 2).await;
    key.post("/v1/otlp/traces", &otlp(&[1], 1)).await.ok();
    // One of two new traces is within the quota; the known trace always is.
    let response = key.post("/v1/otlp/traces", &otlp(&[1, 2, 3], 2)).await.ok();
    assert_eq!(response["partialSuccess"]["rejectedSpans"], "1", "{response}");
    let message = response["partialSuccess"]["errorMessage"].as_str().unwrap();
    assert!(message.starts_with("ingest_quota_exceeded"), "{message}");
    assert_eq!((used_quota(&key).await, stored_traces(&key).await), (TRACES_PER_MONTH, 2));
    assert_eq!(key.post("/v1/otlp/traces", &otlp(&[1, 2], 3)).await.ok(), json!({}));
    let trace = key.get("/v1/traces/00000000000000000000000000000001").await.ok();
    assert_eq!(trace["span_count"], 3);
    let refused = key.get("/v1/traces/00000000000000000000000000000003").await;
    refused.is(404, "not_found");
}

/// Concurrent writers store exactly as many traces as the quota has left.
async fn concurrent_writers_never_exceed_the_quota(app: &TestApp) {
    let rounds: usize = tests::rounds(20);
    let beside = match app.app.db.is_shared() {
        true => Some(app.beside().await),
        false => None,
    };
    let keys = [app.full_key(), beside.as_ref().map_or_else(|| app.full_key(), TestApp::full_key)];
    for round in 0..rounds {
        app.advance(31 * 86_400);
        app.use_traces(TRACES_PER_MONTH - 10).await;
        let writers = (0..100).map(|n| {
            let key = keys[n % 2].clone();
            async move { key.post("/v1/ingest", &json!({"id": format!("{round}-{n}")})).await.status }
        });
        let outcomes = join_all(writers).await;
        let count = |status| outcomes.iter().filter(|it| **it == status).count();
        assert_eq!((count(201), count(402)), (10, 90), "round {round}: {outcomes:?}");
    }
    assert_eq!(used_quota(&keys[0]).await, TRACES_PER_MONTH);
    if let Some(beside) = beside {
        beside.stop().await;
    }
}
