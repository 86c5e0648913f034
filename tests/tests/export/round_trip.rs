//! An export in OTLP, imported by another tenant, gives the same traces.
//!
//! Differences: ids of tenant and project, times of receipt, and readiness, which is determined again.

use serde_json::{Value, json};
use tests::{
    Caller, TestApp,
    expectation::{root, scenarios_of},
    on_both_databases,
};

use crate::{lines, random_traces};

/// Exports the traces of `from`, imports them with `to`, and compares both.
async fn check_round_trip(app: &TestApp, from: &Caller, to: &Caller) -> usize {
    let sent = sorted_lines(from, "?format=otlp").await;
    for line in &sent {
        let reply = to.post("/v1/otlp/traces", line).await.ok();
        assert_eq!(reply, json!({}), "a part of the record was rejected: {line}");
    }
    let (ours, theirs) = (sorted_lines(from, "").await, sorted_lines(to, "").await);
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours
        .into_iter()
        .map(without_import_differences)
        .zip(theirs.into_iter().map(without_import_differences))
    {
        if ours != theirs {
            panic!("{}", difference("trace", &ours, &theirs));
        }
    }
    // A second transfer loses nothing.
    assert_eq!(sent, sorted_lines(to, "?format=otlp").await);
    app.advance(1);
    sent.len()
}

/// Returns the exported lines, sorted by the ID of the trace, because traces that start together are exported in the order
/// of their arrival, which the import reverses.
async fn sorted_lines(caller: &Caller, query: &str) -> Vec<Value> {
    let id = |line: &Value| {
        let of_span = &line["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"];
        line["id"].as_str().or(of_span.as_str()).unwrap().replace('-', "")
    };
    let mut lines = lines(caller, query).await;
    lines.sort_by_key(id);
    lines
}

/// Returns a trace without the values that an import cannot restore.
fn without_import_differences(mut trace: Value) -> Value {
    let members = trace.as_object_mut().unwrap();
    members.remove("project_id");
    members.remove("ready");
    // The ten minutes after which a trace is interrupted begin with the import.
    if members["state"] == "interrupted" {
        members["state"] = "running".into();
    }
    for span in trace["spans"].as_array_mut().unwrap() {
        let span = span.as_object_mut().unwrap();
        span.remove("tenant_id");
        span.remove("created_at");
        // A span without an end, and therefore without a latency, shows its time of receipt.
        if span["latency_ms"].is_null() {
            span.remove("end_time");
        }
    }
    trace
}

/// Returns the first position at which two values differ.
fn difference(at: &str, a: &Value, b: &Value) -> String {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) if x.len() == y.len() => x
            .iter()
            .find(|(key, value)| y.get(*key) != Some(value))
            .map_or_else(String::new, |(key, value)| {
                difference(&format!("{at}.{key}"), value, y.get(key).unwrap_or(&Value::Null))
            }),
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => x
            .iter()
            .zip(y)
            .enumerate()
            .find(|(_, (x, y))| x != y)
            .map_or_else(String::new, |(i, (x, y))| difference(&format!("{at}[{i}]"), x, y)),
        _ => format!("{at}:\n{a}\n{b}"),
    }
}

on_both_databases! {
    async fn random_traces_survive_the_round_trip(app: TestApp) {
        let (_, importer) = app.other_tenant(api::Plan::Enterprise).await;
        let key = app.full_key();
        let mut rng = fastrand::Rng::with_seed(17);
        for _ in 0..20 {
            let items: Vec<Value> = (0..12).map(|_| random_traces::item(&mut rng)).collect();
            let result = key.post("/v1/ingest/batch", &json!({"traces": items})).await.ok();
            assert_eq!(result["rejected"], 0, "{result}");
            key.post("/v1/otlp/traces", &random_traces::request(&mut rng)).await.ok();
            app.advance(7);
        }
        assert!(check_round_trip(app, &key, &importer).await > 250);
    }

    async fn captured_traces_survive_the_round_trip(app: TestApp) {
        let (_, importer) = app.other_tenant(api::Plan::Enterprise).await;
        let key = app.full_key();
        let mut sent = 0;
        for scenario in scenarios_of(&root()) {
            let mut files: Vec<_> = std::fs::read_dir(&scenario).unwrap().map(|it| it.unwrap().path()).collect();
            files.sort();
            for file in files.iter().filter(|it| it.extension().is_some_and(|it| it == "pb")) {
                let body = std::fs::read(file).unwrap();
                // Compressed requests contain the same spans.
                if body.starts_with(&[0x1f, 0x8b]) {
                    continue;
                }
                key.post_bytes("/v1/otlp/traces", "application/x-protobuf", body).await.ok();
                sent += 1;
            }
        }
        assert!(sent > 150, "only {sent} requests found");
        assert!(check_round_trip(app, &key, &importer).await > 150);
    }

    /// A trace with spans of both formats, missing parents, and events without a span.
    async fn unusual_traces_survive_the_round_trip(app: TestApp) {
        let (_, importer) = app.other_tenant(api::Plan::Enterprise).await;
        let key = app.full_key();
        let id = "0190a000-0000-7000-8000-000000000001";
        key.post("/v1/ingest", &json!({"id": id, "name": "mixed", "tags": {"a:b": "c"}, "cost": 0.5, "error": "",
            "spans": [
                {"id": "root", "name": "", "type": "agent", "prompt_tokens": 10, "completion_tokens": 5, "input": ""},
                {"id": "call", "parent_span_id": "root", "name": "c", "type": "llm", "prompt_tokens": 10, "completion_tokens": 5,
                 "model": "gpt-4o", "input": "[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"x\"}]}]", "output": "plain"},
                {"name": "lost", "parent_span_id": "nowhere", "error": "rate limit", "latency_ms": 5,
                 "start_time": "1950-01-01T00:00:00Z", "end_time": "9999-01-01T00:00:00Z"}],
            "events": [{"message": "stray"}, {"message": "of none", "span_id": "unknown"}, {"message": "m", "span_id": "call",
                "level": "fatal", "metadata": {"exception.type": "E", "n": null, "f": 0.1, "l": [], "k": {"x": 1}}}]})).await.ok();
        let span = |span: u64, parent: Option<u64>| json!({"traceId": id.replace('-', ""), "spanId": format!("{span:016x}"),
            "parentSpanId": parent.map(|it| format!("{it:016x}")).unwrap_or_default(), "name": "late",
            "startTimeUnixNano": "1781524800000000000", "attributes": [
                {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
                {"key": "gen_ai.response.id", "value": {"stringValue": "same"}},
                {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "7"}}]});
        let body = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span(1, None), span(2, Some(1)), span(3, Some(77))]}]}]});
        key.post("/v1/otlp/traces", &body).await.ok();
        for item in [
            json!({}),
            json!({"name": "no spans", "input": "i", "output": "", "metadata": {"k": [1, 2.5, null]}, "latency_ms": 12}),
            json!({"ended_at": "2026-01-01T00:00:00Z", "user_id": "u", "external_id": "e", "events": [{"message": "x"}]}),
            json!({"started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:00:01Z", "error": "context_length_exceeded"}),
            json!({"output": "only its own", "spans": [{"name": "s", "input": "root's", "output": "not shown"}]}),
        ] {
            key.post("/v1/ingest", &item).await.ok();
        }
        assert_eq!(check_round_trip(app, &key, &importer).await, 6);
    }

    /// An imported record is subject to the same limits as any other request.
    async fn forged_records_are_held_to_ingest_limits(app: TestApp) {
        let key = app.full_key();
        let long = "x".repeat(100_000);
        let records = [
            json!({"hints": {"session": long, "user": "a\u{0}b", "tags": {&long: &long}}, "cost": -5, "latency_ms": -1, "start": i64::MAX, "end": i64::MIN}),
            json!({"trace": {"given": {"name": long, "model": long, "cost": -1, "started_at": i64::MIN, "tags": {"": "x", "\u{0}": "y"}}}}),
            json!({"trace": {"given": 5}, "hints": 7}),
            json!({"trace": {"given": {"own_texts": true}, "metadata": "no json", "input": "\u{0}"}, "carrier": true}),
            json!({"kind": "\u{0}", "id": "0190a000-0000-7000-8000-000000000001", "failure": "timeout"}),
            json!({"kind": 5}), json!([]), json!("text"), json!(null),
        ];
        for (i, record) in records.iter().enumerate() {
            let body = json!({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": format!("{:032x}", i + 1), "spanId": "0000000000000001",
                "name": "n\u{0}", "attributes": [{"key": "loupe.record", "value": {"stringValue": record.to_string()}},
                {"key": "metadata", "value": {"stringValue": "{\"a\":\"\\u0000\""}}],
                "events": [{"name": "d", "attributes": [{"key": "loupe.record", "value": {"stringValue": "{}"}}]},
                           {"name": "e", "attributes": [{"key": "loupe.record", "value": {"stringValue": "{}"}}]},
                           {"name": "f", "attributes": [{"key": "loupe.record", "value": {"stringValue": "no"}}]}]}]}]}]});
            key.post("/v1/otlp/traces", &body).await.ok();
            let trace = key.get(&format!("/v1/traces/{:032x}", i + 1)).await.ok();
            for label in ["name", "session_id", "model"] {
                assert!(trace[label].as_str().is_none_or(|it| it.chars().count() <= 500), "{label} of {record}");
            }
            assert!(trace["cost"].as_f64().is_none_or(|it| it >= 0.0));
        }
        assert_eq!(lines(&key, "").await.len(), records.len());
        assert_eq!(lines(&key, "?format=otlp").await.len(), records.len());
    }
}
