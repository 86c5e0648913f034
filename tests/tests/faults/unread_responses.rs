//! Responses that a client requests and does not read.

use std::time::Duration;

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::{ResourceSpans, ScopeSpans, Span},
};
use prost::Message;
use serde_json::json;
use tests::On;

use crate::{
    attacker_connections::{ask_without_reading, responses},
    bystander::Bystander,
    installation::{Installation, MAX_RESIDENT_MIB, full_size},
};

/// Traces with large texts that the attacker stores.
const TRACE_COUNT: usize = 45;
/// Bytes of text of each.
const TEXT_BYTES: usize = 200_000;

/// Returns a protobuf export of one trace whose spans all have a text of control characters, which JSON writes
/// with six characters each.
fn spans_of_control_characters(count: u8, bytes: usize) -> Vec<u8> {
    let text = |key: &str| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(Value::StringValue("\u{1}".repeat(bytes))) }),
        ..KeyValue::default()
    };
    let span = |n: u8| Span {
        trace_id: vec![7; 16],
        span_id: vec![n + 1; 8],
        name: "large".to_owned(),
        start_time_unix_nano: 1_700_000_000_000_000_000,
        end_time_unix_nano: 1_700_000_001_000_000_000,
        attributes: vec![text("output.value")],
        ..Span::default()
    };
    let scope_spans = vec![ScopeSpans { spans: (0..count).map(span).collect(), ..ScopeSpans::default() }];
    let resource_spans = vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

async fn store_large_traces(installation: &Installation) {
    let attacker = installation.attacker();
    for n in 0..TRACE_COUNT {
        // Half of the texts grow when JSON escapes them.
        let text = if n % 2 == 0 { "x".repeat(TEXT_BYTES) } else { "\u{1}".repeat(TEXT_BYTES) };
        attacker.post("/v1/ingest", &json!({"id": format!("large-{n}"), "input": text})).await.ok();
    }
    let body = spans_of_control_characters(20, 800_000);
    attacker.post_bytes("/v1/otlp/traces", "application/x-protobuf", body).await.ok();
}

async fn unread_responses_stay_within_memory_share(on: On) {
    let installation = Installation::on(on).await;
    store_large_traces(&installation).await;
    let detail = format!("/v1/traces/{}", "07".repeat(16));
    let hold = Duration::from_secs(if full_size() { 15 } else { 8 });
    for (path, connections) in
        [("/v1/traces?limit=200", 200), (detail.as_str(), 10), ("/v1/traces/export?format=jsonl", 40)]
    {
        let bystander = Bystander::start(&installation, false).await;
        let sockets = ask_without_reading(&installation, path, connections, hold).await;
        let figures = bystander.stop().await;
        let statuses = responses(sockets, Duration::from_millis(20)).await;
        println!(
            "{on:?}: {connections} unread GET {path}: peak {} MiB; {statuses:?}; bystander {figures}",
            installation.peak_resident_mib()
        );
        figures.assert_served();
    }
    assert!(installation.peak_resident_mib() <= MAX_RESIDENT_MIB);
    // The attacker is served again once its connections are closed.
    let attacker = installation.attacker();
    let mut page = attacker.get("/v1/traces?limit=200").await;
    for _ in 0..20 {
        if page.status == 200 {
            break;
        }
        page.is(503, "overloaded");
        tokio::time::sleep(Duration::from_millis(500)).await;
        page = attacker.get("/v1/traces?limit=200").await;
    }
    page.ok();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_responses_stay_within_memory_share_on_sqlite() {
    unread_responses_stay_within_memory_share(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_responses_stay_within_memory_share_on_postgres() {
    unread_responses_stay_within_memory_share(On::Postgres).await;
}
