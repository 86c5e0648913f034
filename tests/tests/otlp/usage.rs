//! Cached, cache-write and reasoning tokens are shown as sent and summed once.

use serde_json::{Value, json};
use tests::{
    Caller,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request},
};

const TRACE_ID: u128 = 0xdef;

on_both_databases! {
    async fn usage_details_are_shown_without_a_price(app: TestApp) {
        let key = app.full_key();
        let call = Span::new(TRACE_ID, 1, "call", TEST_START_MICROS).calls("unknown-model", 100, 20)
            .with("gen_ai.usage.cache_read.input_tokens", 64).with("gen_ai.usage.cache_creation.input_tokens", 16)
            .with("gen_ai.usage.reasoning_tokens", 12);
        send(&key, &[call]).await;
        let details = json!({"cached_input_tokens": 64, "cache_write_tokens": 16, "reasoning_tokens": 12});
        let trace = trace(&key).await;
        assert_eq!((&trace["cost"], &trace["usage_details"]), (&Value::Null, &details));
        assert_eq!(trace["spans"][0]["usage_details"], details);
        assert_eq!(key.get("/v1/traces").await.ok()["traces"][0]["usage_details"], details);
    }

    async fn absent_usage_details_are_omitted(app: TestApp) {
        let key = app.full_key();
        send(&key, &[Span::new(TRACE_ID, 1, "call", TEST_START_MICROS).calls("gpt-4o", 100, 20)]).await;
        let without = trace(&key).await;
        assert_eq!((without.get("usage_details"), without["spans"][0].get("usage_details")), (None, None));
        // A zero that was sent is shown; a count that was not sent is left out.
        send(&key, &[Span::new(TRACE_ID, 2, "next", TEST_START_MICROS).under(1).calls("gpt-4o", 100, 20).with("gen_ai.usage.cache_read.input_tokens", 0)]).await;
        assert_eq!(trace(&key).await["usage_details"], json!({"cached_input_tokens": 0}));
    }

    async fn usage_details_of_late_spans_are_added_once(app: TestApp) {
        let key = app.full_key();
        let call = |id: u64, cached: i64, reasoning: i64| {
            Span::new(TRACE_ID, id, &format!("call {id}"), TEST_START_MICROS + i64::try_from(id).unwrap()).under(1).calls("gpt-4o", 100, 20)
                .with("gen_ai.usage.cache_read.input_tokens", cached).with("gen_ai.usage.reasoning_tokens", reasoning)
        };
        let sums = |cached: i64, reasoning: i64| json!({"cached_input_tokens": cached, "reasoning_tokens": reasoning});
        send(&key, &[call(2, 64, 5)]).await;
        assert_eq!(trace(&key).await["usage_details"], sums(64, 5));
        send(&key, &[call(3, 32, 7)]).await;
        assert_eq!(trace(&key).await["usage_details"], sums(96, 12));
        // A retry changes nothing.
        send(&key, &[call(3, 32, 7), call(2, 64, 5)]).await;
        assert_eq!(trace(&key).await["usage_details"], sums(96, 12));
        // A wrapper repeats what the calls below it report.
        let wrapper = Span::new(TRACE_ID, 1, "agent", TEST_START_MICROS).calls("gpt-4o", 200, 40)
            .with("gen_ai.usage.cache_read.input_tokens", 96).with("gen_ai.usage.reasoning_tokens", 12);
        send(&key, &[wrapper]).await;
        let whole = trace(&key).await;
        assert_eq!((&whole["usage_details"], &whole["prompt_tokens_total"]), (&sums(96, 12), &json!(200)));
        let wrapper = named(&whole, "agent");
        assert_eq!(wrapper.get("usage_details"), None);
        let kept = &wrapper["metadata"]["usage"];
        assert_eq!((&kept["prompt_tokens"], &kept["cached_input_tokens"], &kept["reasoning_tokens"]), (&json!(200), &json!(96), &json!(12)));
    }

    async fn usage_details_of_items_and_late_spans_are_summed(app: TestApp) {
        let key = app.full_key();
        let id = uuid::Uuid::from_u128(TRACE_ID);
        let item = json!({"id": id, "spans": [
            {"id": "a", "name": "outer", "type": "llm", "model": "gpt-4o", "prompt_tokens": 1000, "completion_tokens": 100,
             "usage_details": {"cached_input_tokens": 400, "reasoning_tokens": 30}},
            {"parent_span_id": "a", "name": "inner", "usage_details": {"cached_input_tokens": 5, "cache_write_tokens": null}},
            {"name": "none", "usage_details": null}]});
        key.post("/v1/ingest", &item).await.ok();
        let given = trace(&key).await;
        assert_eq!(given["usage_details"], json!({"cached_input_tokens": 405, "reasoning_tokens": 30}), "items are taken literally");
        // The cost of 600 tokens at 2.50, 400 at 1.25, and 100 at 10 dollars per million.
        assert_eq!(named(&given, "outer")["cost"], 0.003);
        assert_eq!(named(&given, "outer")["metadata"]["cost_details"]["buckets"]["cached_input"], 400);
        send(&key, &[Span::new(TRACE_ID, 1, "late", TEST_START_MICROS).calls("gpt-4o", 10, 5).with("gen_ai.usage.cache_read.input_tokens", 7)]).await;
        assert_eq!(trace(&key).await["usage_details"], json!({"cached_input_tokens": 412, "reasoning_tokens": 30}));
    }
}

async fn send(key: &Caller, spans: &[Span]) {
    assert_eq!(key.post("/v1/otlp/traces", &request(spans)).await.ok(), json!({}));
}

async fn trace(key: &Caller) -> Value {
    key.get(&format!("/v1/traces/{TRACE_ID:032x}")).await.ok()
}

fn named<'a>(trace: &'a Value, name: &str) -> &'a Value {
    trace["spans"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap()
}
