//! Long traces, whose rows a job updates.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};
use store::traces::LONG_TRACE_SPANS;
use tests::{TestApp, on_both_databases};

const TRACE_ID: &str = "5b8efff798038103d269b633813fc60c";

/// Returns the trace's OTLP span number `i`: a call with tokens, a microsecond after the previous one.
fn span(i: usize) -> Value {
    let id = format!("{:016x}", i + 1);
    let usage = |key: &str, n: usize| json!({"key": key, "value": {"intValue": n.to_string()}});
    json!({"traceId": TRACE_ID, "spanId": id, "parentSpanId": if i == 0 { "" } else { "0000000000000001" },
        "name": format!("step {i}"), "startTimeUnixNano": format!("{}", 1_781_524_800_000_000_000_u64 + i as u64 * 1_000),
        "endTimeUnixNano": "1781524801000000000",
        "attributes": if i == 0 { json!([]) } else { json!([
            {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
            usage("gen_ai.usage.input_tokens", 2), usage("gen_ai.usage.output_tokens", 1)]) }})
}

async fn send(app: &TestApp, spans: Vec<Value>) {
    let body = json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]});
    app.full_key().post("/v1/otlp/traces", &body).await.ok();
}

async fn count_and_tokens(app: &TestApp) -> (u64, u64) {
    let trace = &app.full_key().get("/v1/traces?limit=1").await.ok()["traces"][0];
    (trace["span_count"].as_u64().unwrap(), trace["total_token_count"].as_u64().unwrap())
}

on_both_databases! {
    async fn long_trace_totals_follow_late_spans(app: TestApp) {
        let long = usize::try_from(LONG_TRACE_SPANS).unwrap();
        send(app, (0..long).map(span).collect()).await;
        assert_eq!(count_and_tokens(app).await, (2_000, 5_997));
        for i in long..long + 5 {
            send(app, vec![span(i)]).await;
        }
        // The spans are stored and shown immediately, and one job sums them up for all five requests.
        let rows = app.full_key().get(&format!("/v1/traces/{TRACE_ID}")).await.ok();
        assert!(rows["spans_next_cursor"].is_string());
        assert_eq!(count_and_tokens(app).await, (2_000, 5_997));
        app.advance(4);
        assert_eq!(app.drain().await, 1);
        assert_eq!(count_and_tokens(app).await, (2_005, 6_012));
        app.advance(10);
        app.drain().await;
        assert_eq!(app.full_key().get("/v1/traces").await.ok()["traces"][0]["ready"], true);
    }

    /// The root has no texts: texts and details come from its calls, whatever their order of arrival.
    async fn long_trace_follows_texts_and_details_of_late_calls(app: TestApp) {
        let long = usize::try_from(LONG_TRACE_SPANS).unwrap();
        let telling = |i: usize| {
            let mut span = span(i);
            let attributes = span["attributes"].as_array_mut().unwrap();
            attributes.push(json!({"key": "gen_ai.usage.cache_read.input_tokens", "value": {"intValue": "1"}}));
            attributes.push(json!({"key": "gen_ai.input.messages", "value": {"stringValue": format!("in {i}")}}));
            attributes.push(json!({"key": "gen_ai.output.messages", "value": {"stringValue": format!("out {i}")}}));
            span
        };
        let shown = async || {
            let trace = app.full_key().get("/v1/traces?limit=1").await.ok()["traces"][0].clone();
            (trace["input"].clone(), trace["output"].clone(), trace["usage_details"]["cached_input_tokens"].clone())
        };
        send(app, (0..long).map(|i| if i == 5 { telling(i) } else { span(i) }).collect()).await;
        assert_eq!(shown().await, (json!("in 5"), json!("out 5"), json!(1)));
        for i in [long + 7, long + 3] {
            send(app, vec![telling(i)]).await;
        }
        app.advance(4);
        app.drain().await;
        assert_eq!(shown().await, (json!("in 5"), json!(format!("out {}", long + 7)), json!(3)));
    }
}
