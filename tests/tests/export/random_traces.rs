//! Random traces: texts, times and numbers of every storable kind.

use fastrand::Rng;
use serde_json::{Value, json};

const TEXT_SAMPLES: &[&str] = &[
    "",
    "hello",
    "línea 世界 🙏🏽 \u{202e}rtl",
    "a \"quoted\" \\ back\nslash\ttab \u{1} bell",
    "null",
    "undefined",
    "[]",
    "{}",
    "[1, 2, 3]",
    "{\"k\": [1.50, null, {\"x\": \"\\u00fc\"}]}",
    "[{\"role\":\"user\",\"content\":\"hi\"}]",
    "[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"said\"}]}]",
    "{\"role\":\"assistant\",\"content\":\"one\"}",
    "[{\"role\":\"assistant\",\"parts\":[]}]",
    "[{\"no_role\":1}]",
    "\"a JSON string\"",
    "# Title\n\n- item\n\n```rust\nfn main() {}\n```\n",
    " leading and trailing ",
    "[Scrubbed due to 'session']",
];
const SPAN_TYPES: &[&str] = &["llm", "tool", "retrieval", "other", "agent", "LLM", ""];
const MODEL_NAMES: &[&str] =
    &["gpt-4o", "openai/gpt-4o-2024-08-06", "claude-sonnet-4-5-20250929", "house-model", "模型"];
const ERROR_MESSAGES: &[&str] =
    &["Request timed out", "429 Too Many Requests", "maximum context length", "?", "invalid JSON"];

fn pick<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
    of[rng.usize(..of.len())]
}

/// Adds a field with a probability of one in `in_how_many`.
fn add_sometimes(
    rng: &mut Rng,
    object: &mut Value,
    name: &str,
    in_how_many: u32,
    value: impl FnOnce(&mut Rng) -> Value,
) {
    if rng.u32(..in_how_many) == 0 {
        object[name] = value(rng);
    }
}

fn text(rng: &mut Rng) -> Value {
    match rng.u8(..8) {
        0 => pick(rng, TEXT_SAMPLES).repeat(rng.usize(..50)).into(),
        1 => std::iter::repeat_with(|| rng.char('\u{1}'..'\u{3000}')).take(20).collect::<String>().into(),
        _ => pick(rng, TEXT_SAMPLES).into(),
    }
}

fn time(rng: &mut Rng) -> i64 {
    match rng.u8(..10) {
        0 => rng.i64(-62_135_596_800_000_000..253_402_300_799_999_999),
        1 => rng.i64(-5..5),
        _ => 1_781_524_800_000_000 + rng.i64(-1_000_000_000..1_000_000_000),
    }
}

fn stamp(micros: i64) -> Value {
    api::Timestamp::from_micros(micros).to_string().into()
}

/// Returns two times in ascending order.
fn times(rng: &mut Rng) -> (Value, Value) {
    let (a, b) = (time(rng), time(rng));
    (stamp(a.min(b)), stamp(a.max(b)))
}

fn object(rng: &mut Rng) -> Value {
    let mut object = json!({});
    for _ in 0..rng.usize(..4) {
        let value = match rng.u8(..7) {
            0 => json!(null),
            1 => json!(rng.i64(..)),
            2 => json!([true, "x", {"deep": [1]}]),
            3 => json!({"request_model": "asked", "name": "f"}),
            _ => text(rng),
        };
        let key = pick(
            rng,
            &[
                "k",
                "tool",
                "resource",
                "usage",
                "cost_usd",
                "request_model",
                "a.b",
                "",
                "scope",
                "exception.type",
            ],
        );
        object[key] = if key == "cost_usd" { json!(rng.u32(..1_000)) } else { value };
    }
    object
}

fn tags(rng: &mut Rng) -> Value {
    let mut tags = json!({});
    for _ in 0..rng.usize(..3) {
        tags[pick(rng, &["env", "a:b", "vip", "日本", " spaced "])] = pick(rng, TEXT_SAMPLES).into();
    }
    tags
}

fn span(rng: &mut Rng, i: usize) -> Value {
    let mut span = json!({"id": format!("s{i}"), "name": text(rng)});
    if i > 0 {
        add_sometimes(rng, &mut span, "parent_span_id", 2, |rng| format!("s{}", rng.usize(..i + 1)).into());
    }
    add_sometimes(rng, &mut span, "type", 1, |rng| pick(rng, SPAN_TYPES).into());
    add_sometimes(rng, &mut span, "input", 2, text);
    add_sometimes(rng, &mut span, "output", 2, text);
    add_sometimes(rng, &mut span, "model", 2, |rng| pick(rng, MODEL_NAMES).into());
    add_sometimes(rng, &mut span, "latency_ms", 3, |rng| rng.u32(..).into());
    add_sometimes(rng, &mut span, "cost", 4, |rng| (f64::from(rng.u32(..)) / 1e7).into());
    add_sometimes(rng, &mut span, "error", 4, |rng| pick(rng, ERROR_MESSAGES).into());
    add_sometimes(rng, &mut span, "prompt_tokens", 2, |rng| rng.u32(..).into());
    add_sometimes(rng, &mut span, "completion_tokens", 2, |rng| rng.u32(..100_000).into());
    add_sometimes(
        rng,
        &mut span,
        "usage_details",
        3,
        |rng| json!({"cached_input_tokens": rng.u32(..100), "reasoning_tokens": rng.u32(..9)}),
    );
    add_sometimes(rng, &mut span, "metadata", 2, object);
    if rng.bool() {
        (span["start_time"], span["end_time"]) = times(rng);
    }
    span
}

/// Returns an item of JSON ingest.
pub fn item(rng: &mut Rng) -> Value {
    let mut item = json!({});
    let spans: Vec<Value> = (0..rng.usize(..5)).map(|i| span(rng, i)).collect();
    let count = spans.len();
    add_sometimes(rng, &mut item, "spans", 1, |_| spans.into());
    for name in ["input", "output"] {
        add_sometimes(rng, &mut item, name, 3, text);
    }
    for name in ["name", "session_id", "user_id", "external_id"] {
        add_sometimes(rng, &mut item, name, 3, |rng| {
            pick(rng, &["x", "日本", "\u{1}", "a:b", "null"]).into()
        });
    }
    add_sometimes(rng, &mut item, "model", 4, |rng| pick(rng, MODEL_NAMES).into());
    add_sometimes(rng, &mut item, "error", 4, |rng| pick(rng, ERROR_MESSAGES).into());
    add_sometimes(rng, &mut item, "latency_ms", 4, |rng| rng.u32(..1_000_000).into());
    add_sometimes(rng, &mut item, "cost", 4, |rng| (f64::from(rng.u32(..)) / 1e9).into());
    add_sometimes(rng, &mut item, "metadata", 3, object);
    add_sometimes(rng, &mut item, "tags", 2, tags);
    match rng.u8(..6) {
        0 => (item["started_at"], item["ended_at"]) = times(rng),
        1 => item["started_at"] = stamp(time(rng)),
        2 => item["ended_at"] = stamp(time(rng).max(0)),
        _ => {}
    }
    let events: Vec<Value> = (0..rng.usize(..4))
        .map(|_| {
            let mut event = json!({"message": text(rng)});
            add_sometimes(rng, &mut event, "span_id", 2, |rng| format!("s{}", rng.usize(..count + 1)).into());
            add_sometimes(rng, &mut event, "level", 2, |rng| {
                pick(rng, &["debug", "error", "fatal", ""]).into()
            });
            add_sometimes(rng, &mut event, "metadata", 2, object);
            event
        })
        .collect();
    add_sometimes(rng, &mut item, "events", 2, |_| events.into());
    item
}

/// Returns an OTLP request of one trace.
pub fn request(rng: &mut Rng) -> Value {
    let trace = format!("{:032x}", rng.u128(1..));
    let count = rng.usize(1..8);
    let spans: Vec<Value> = (0..count).map(|i| otlp_span(rng, &trace, i)).collect();
    json!({"resourceSpans": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "app"}}]},
        "scopeSpans": [{"scope": {"name": "lib", "version": "1"}, "spans": spans}]}]})
}

fn otlp_span(rng: &mut Rng, trace: &str, i: usize) -> Value {
    let start = 1_781_524_800_000_000_000 + rng.u64(..1_000_000_000_000);
    let mut attributes = Vec::new();
    let mut add = |key: &str, value: Value| attributes.push(json!({"key": key, "value": value}));
    let string = |text: &str| json!({"stringValue": text});
    add("gen_ai.operation.name", string(pick(rng, &["chat", "execute_tool", "retrieval", "invoke_agent"])));
    for key in ["input.value", "output.value", "gen_ai.input.messages", "gen_ai.output.messages", "app.note"]
    {
        if rng.bool() {
            add(key, string(text(rng).as_str().unwrap()));
        }
    }
    if rng.bool() {
        add("gen_ai.response.model", string(pick(rng, MODEL_NAMES)));
        add("gen_ai.usage.input_tokens", json!({"intValue": rng.u32(..10_000).to_string()}));
        add("gen_ai.response.id", string(pick(rng, &["r1", "r2"])));
    }
    if rng.bool() {
        add("gen_ai.usage.cache_read.input_tokens", json!({"intValue": rng.u32(..100).to_string()}));
        add("gen_ai.usage.cache_creation.input_tokens", json!({"intValue": rng.u32(..2).to_string()}));
    }
    if rng.bool() {
        add("session.id", string(pick(rng, &["s1", "会话"])));
        add(
            "tag.tags",
            json!({"arrayValue": {"values": [{"stringValue": "env:prod"}, {"stringValue": "beta"}]}}),
        );
        add("langfuse.trace.name", string("named"));
        add("langfuse.trace.input", string(text(rng).as_str().unwrap()));
    }
    add("app.list", json!({"arrayValue": {"values": [{"intValue": "1"}, {"doubleValue": 0.5}]}}));
    let mut span = json!({"traceId": trace, "spanId": format!("{:016x}", i + 1), "name": text(rng), "kind": 1,
        "startTimeUnixNano": start.to_string(), "attributes": attributes});
    if i > 0 {
        span["parentSpanId"] = format!("{:016x}", rng.usize(1..12)).into();
    }
    add_sometimes(rng, &mut span, "endTimeUnixNano", 2, |rng| {
        (start + rng.u64(..9_000_000_000)).to_string().into()
    });
    add_sometimes(
        rng,
        &mut span,
        "status",
        3,
        |rng| json!({"code": 2, "message": pick(rng, ERROR_MESSAGES)}),
    );
    add_sometimes(rng, &mut span, "events", 2, |rng| {
        json!([{"name": "exception", "timeUnixNano": start.to_string(), "attributes": [
                {"key": "exception.type", "value": {"stringValue": "E"}},
                {"key": "exception.message", "value": {"stringValue": pick(rng, ERROR_MESSAGES)}}]},
            {"name": text(rng), "timeUnixNano": start.to_string(), "attributes": [{"key": "n", "value": {"intValue": "5"}},
                {"key": "f", "value": {"doubleValue": 0.1}}, {"key": "l", "value": {"arrayValue": {"values": [{"boolValue": true}]}}}]}])
    });
    span
}
