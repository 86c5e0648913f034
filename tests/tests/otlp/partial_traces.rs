//! Traces that arrive in pieces: late roots, late spans, repeated usage, readiness.

use serde_json::{Value, json};
use tests::{
    Caller, TestApp,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request},
};

const TRACE_ID: u128 = 0xabc;
const SECOND: i64 = 1_000_000;

on_both_databases! {
    async fn late_root_span_names_the_trace(app: TestApp) {
        let key = app.full_key();
        let call = Span::new(TRACE_ID, 2, "call", TEST_START_MICROS + SECOND).under(1).calls("gpt-4o", 10, 5).failed("Request timed out");
        send(&key, &[call]).await;
        let without = trace(&key).await;
        assert_eq!(without["name"], Value::Null);
        assert_eq!(without["error"], "Request timed out", "without a root, the error is that of the first failed span");
        assert_eq!(without["started_at"], "2026-06-15T12:00:01.000000Z");

        send(&key, &[Span::new(TRACE_ID, 1, "answer", TEST_START_MICROS).until(Some(TEST_START_MICROS + 3 * SECOND)).with("user.id", "u-1")]).await;
        let with = trace(&key).await;
        assert_eq!((&with["name"], &with["error"], &with["latency_ms"]), (&json!("answer"), &Value::Null, &json!(3000)));
        assert_eq!((&with["model"], &with["total_token_count"], &with["span_count"]), (&json!("gpt-4o"), &json!(15), &json!(2)));
        assert_eq!((&with["user_id"], &with["started_at"]), (&json!("u-1"), &json!("2026-06-15T12:00:00.000000Z")));
        // The recovered failure is still found.
        let found = key.get("/v1/traces?failure_type=timeout").await.ok();
        assert_eq!(found["traces"][0]["id"], with["id"]);
        assert_eq!(key.get("/v1/traces?error=true").await.ok()["traces"], json!([]));
    }

    async fn late_spans_update_all_listed_fields(app: TestApp) {
        let key = app.full_key();
        send(&key, &[Span::new(TRACE_ID, 1, "root", TEST_START_MICROS).with("tag.tags", vec!["env:prod"]).with("session.id", "s-1")]).await;
        send(&key, &[
            Span::new(TRACE_ID, 2, "early", TEST_START_MICROS - SECOND).under(1).calls("gpt-4o-mini", 100, 20),
            Span::new(TRACE_ID, 3, "later", TEST_START_MICROS + SECOND).under(1).calls("gpt-4o", 1000, 100).until(Some(TEST_START_MICROS + 9 * SECOND)),
        ]).await;
        let whole = trace(&key).await;
        assert_eq!((&whole["model"], &whole["total_token_count"]), (&json!("gpt-4o-mini"), &json!(1220)));
        assert_eq!(whole["started_at"], "2026-06-15T11:59:59.000000Z");
        assert_eq!(whole["latency_ms"], 1000, "the latency is that of the root");
        let sum: f64 = spans(&whole).iter().filter_map(|it| it["cost"].as_f64()).sum();
        assert!((whole["cost"].as_f64().unwrap() - sum).abs() < 1e-12);
        for filter in ["token_count_min=1220&token_count_max=1220", "model=gpt-4o-mini", "session_id=s-1", "tag=env:prod", "tag_key=env&tag_value=prod", "latency_min=1000&latency_max=1000"] {
            let found = key.get(&format!("/v1/traces?{filter}")).await.ok();
            assert_eq!(found["traces"].as_array().unwrap().len(), 1, "{filter}");
            assert_eq!(found["traces"][0]["started_at"], whole["started_at"], "{filter}");
        }
        assert_eq!(key.get("/v1/traces?token_count_max=1219").await.ok()["traces"], json!([]));
    }

    async fn trace_without_ended_root_is_running_then_interrupted(app: TestApp) {
        let key = app.full_key();
        let call = Span::new(TRACE_ID, 2, "call", TEST_START_MICROS).under(1).calls("gpt-4o", 10, 5);
        send(&key, &[call]).await;
        let running = trace(&key).await;
        assert_eq!((&running["state"], &running["ready"], &running["total_token_count"]), (&json!("running"), &json!(false), &json!(15)));
        assert_eq!(key.get("/v1/traces").await.ok()["traces"][0]["state"], "running");
        // The ten minutes begin with the last span.
        app.advance(599);
        app.drain().await;
        send(&key, &[Span::new(TRACE_ID, 3, "second call", TEST_START_MICROS).under(1).calls("gpt-4o", 10, 5)]).await;
        app.advance(599);
        app.drain().await;
        assert_eq!(trace(&key).await["state"], "running");
        app.advance(2);
        app.drain().await;
        let interrupted = trace(&key).await;
        assert_eq!((&interrupted["state"], &interrupted["ready"]), (&json!("interrupted"), &json!(true)));
        send(&key, &[Span::new(TRACE_ID, 1, "answer", TEST_START_MICROS)]).await;
        let whole = trace(&key).await;
        assert_eq!((&whole["state"], &whole["total_token_count"], &whole["span_count"]), (&json!("complete"), &json!(30), &json!(3)));
        assert_eq!(whole["cost"], 0.00015);
    }

    async fn trace_with_root_without_end_is_not_complete(app: TestApp) {
        let key = app.full_key();
        send(&key, &[Span::new(TRACE_ID, 1, "answer", TEST_START_MICROS).until(None)]).await;
        assert_eq!(trace(&key).await["state"], "running");
        app.advance(601);
        app.drain().await;
        assert_eq!(trace(&key).await["state"], "interrupted");
    }

    async fn trace_whose_root_is_in_another_process_is_complete_without_it(app: TestApp) {
        let key = app.full_key();
        let remote = |trace| {
            let mut body = request(&[Span::new(trace, 2, "POST /chat", TEST_START_MICROS).under(1)]);
            // The parent of the span is remote.
            body["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["flags"] = json!(0x301);
            body
        };
        let state = async |trace: u128| key.get(&format!("/v1/traces/{trace:032x}")).await.ok()["state"].clone();
        key.post("/v1/otlp/traces", &remote(7)).await.ok();
        key.post("/v1/otlp/traces", &remote(8)).await.ok();
        key.post("/v1/otlp/traces", &request(&[Span::new(7, 3, "call", TEST_START_MICROS).under(2)])).await.ok();
        // The parent of this span is in the same process.
        key.post("/v1/otlp/traces", &request(&[Span::new(8, 3, "call", TEST_START_MICROS).under(9)])).await.ok();
        assert_eq!((state(7).await, state(8).await), (json!("running"), json!("running")));
        app.advance(601);
        app.drain().await;
        assert_eq!((state(7).await, state(8).await), (json!("complete"), json!("interrupted")));
    }

    async fn trace_with_ended_root_is_complete(app: TestApp) {
        let key = app.full_key();
        send(&key, &[Span::new(TRACE_ID, 1, "answer", TEST_START_MICROS)]).await;
        assert_eq!(trace(&key).await["state"], "complete");
        send(&key, &[Span::new(TRACE_ID, 2, "late", TEST_START_MICROS).under(1)]).await;
        assert_eq!(trace(&key).await["state"], "complete");
        // A trace that its sender declares complete, and a trace of JSON ingest, need no root.
        send(&key, &[Span::new(5, 2, "call", TEST_START_MICROS).under(1).with("trace.complete", true)]).await;
        assert_eq!(key.get(&format!("/v1/traces/{:032x}", 5)).await.ok()["state"], "complete");
        let stored = key.post("/v1/ingest", &json!({"spans": [{"name": "call"}]})).await.ok();
        assert_eq!(key.get(&format!("/v1/traces/{}", stored["id"].as_str().unwrap())).await.ok()["state"], "complete");
    }

    async fn usage_repeated_by_a_wrapper_counts_once(app: TestApp) {
        let key = app.full_key();
        let wrapper = Span::new(TRACE_ID, 1, "agent", TEST_START_MICROS).calls("gpt-4o", 1000, 100).until(Some(TEST_START_MICROS + 5 * SECOND));
        let call = Span::new(TRACE_ID, 2, "call", TEST_START_MICROS + 1).under(1).calls("gpt-4o", 1000, 100);
        send(&key, &[wrapper]).await;
        assert_eq!(trace(&key).await["total_token_count"], 1100, "no wrapper repeats the usage yet");
        send(&key, &[call]).await;
        let whole = trace(&key).await;
        assert_eq!((&whole["prompt_tokens_total"], &whole["completion_tokens_total"]), (&json!(1000), &json!(100)));
        assert_eq!(whole["cost"], 0.0035);
        let wrapper = named(&whole, "agent");
        assert_eq!((wrapper.get("prompt_tokens"), wrapper.get("completion_tokens"), &wrapper["cost"]), (None, None, &Value::Null));
        let usage = &wrapper["metadata"]["usage"];
        assert_eq!((&usage["prompt_tokens"], &usage["completion_tokens"], &usage["cost"]), (&json!(1000), &json!(100), &json!(0.0035)));
        let call = named(&whole, "call");
        assert_eq!((&call["prompt_tokens"], &call["cost"]), (&json!(1000), &json!(0.0035)));
        assert!(call["metadata"]["usage"].is_null());
    }

    async fn one_response_reported_twice_counts_once(app: TestApp) {
        let key = app.full_key();
        let call = |id| {
            Span::new(TRACE_ID, id, &format!("call {id}"), TEST_START_MICROS + i64::try_from(id).unwrap()).under(1)
                .calls("gpt-4o", 10, 5).with("gen_ai.response.id", "chatcmpl-1")
        };
        send(&key, &[call(3)]).await;
        send(&key, &[call(2)]).await;
        let whole = trace(&key).await;
        assert_eq!(whole["total_token_count"], 15);
        assert_eq!(named(&whole, "call 2")["prompt_tokens"], 10);
        assert_eq!(named(&whole, "call 3")["metadata"]["usage"]["prompt_tokens"], 10);
    }

    async fn trace_is_ready_five_seconds_after_its_last_span(app: TestApp) {
        let key = app.full_key();
        send(&key, &[Span::new(TRACE_ID, 1, "root", TEST_START_MICROS)]).await;
        assert!(!ready_after(app, 4).await);
        send(&key, &[Span::new(TRACE_ID, 2, "late", TEST_START_MICROS).under(1)]).await;
        assert!(!ready_after(app, 4).await, "a span arrived meanwhile");
        assert!(ready_after(app, 1).await);
        send(&key, &[Span::new(TRACE_ID, 3, "later", TEST_START_MICROS).under(1)]).await;
        assert!(!ready_after(app, 4).await, "a late span resets readiness");
        assert!(ready_after(app, 1).await);
        // A span that is stored already changes nothing.
        send(&key, &[Span::new(TRACE_ID, 3, "later", TEST_START_MICROS).under(1)]).await;
        assert!(ready_after(app, 0).await);
    }

    async fn trace_without_ended_root_is_ready_after_ten_minutes(app: TestApp) {
        let key = app.full_key();
        send(&key, &[Span::new(TRACE_ID, 2, "orphan", TEST_START_MICROS).under(1)]).await;
        assert!(!ready_after(app, 599).await);
        assert!(ready_after(app, 1).await);
        send(&key, &[Span::new(TRACE_ID, 1, "root", TEST_START_MICROS).until(None)]).await;
        assert!(!ready_after(app, 599).await, "the root has not ended");
        assert!(ready_after(app, 1).await);
    }

    async fn complete_attribute_makes_the_trace_ready(app: TestApp) {
        let key = app.full_key();
        send(&key, &[Span::new(TRACE_ID, 2, "last", TEST_START_MICROS).under(1).with("trace.complete", true)]).await;
        assert!(ready_after(app, 0).await);
    }

    async fn spans_merge_into_a_trace_of_the_json_ingest(app: TestApp) {
        let key = app.full_key();
        let id = uuid::Uuid::from_u128(TRACE_ID);
        key.post("/v1/ingest", &json!({"id": id, "name": "given", "tags": {"a": "b"}, "spans": [
            {"name": "own", "type": "llm", "model": "gpt-4o", "prompt_tokens": 7, "completion_tokens": 3}]})).await.ok();
        send(&key, &[Span::new(TRACE_ID, 1, "root", TEST_START_MICROS).calls("gpt-4o", 10, 5)]).await;
        let whole = trace(&key).await;
        assert_eq!((&whole["name"], &whole["span_count"], &whole["total_token_count"]), (&json!("given"), &json!(2), &json!(25)));
        assert_eq!(whole["tags"], json!(["a:b"]));
    }
}

async fn send(key: &Caller, spans: &[Span]) {
    assert_eq!(key.post("/v1/otlp/traces", &request(spans)).await.ok(), json!({}));
}

async fn trace(key: &Caller) -> Value {
    key.get(&format!("/v1/traces/{TRACE_ID:032x}")).await.ok()
}

/// Returns whether the trace is ready after this many seconds, when every due job has run.
async fn ready_after(app: &TestApp, seconds: i64) -> bool {
    app.advance(seconds);
    app.drain().await;
    trace(&app.full_key()).await["ready"] == true
}

fn spans(trace: &Value) -> &Vec<Value> {
    trace["spans"].as_array().unwrap()
}

fn named<'a>(trace: &'a Value, name: &str) -> &'a Value {
    spans(trace).iter().find(|it| it["name"] == name).unwrap()
}
