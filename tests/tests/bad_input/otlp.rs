//! OTLP: truncated, changed and invented messages.

use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::{AnyValue, KeyValue, any_value::Value as Any},
    trace::v1::{ResourceSpans, ScopeSpans, Span},
};
use prost::Message;
use serde_json::{Value, json};
use tests::{Caller, Reply, app::TEST_START_MICROS, on_both_databases};

use super::{check_health, count};

const PROTOBUF_TYPE: &str = "application/x-protobuf";

fn attribute(key: &str, value: Any) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn span(trace: u8, id: u8) -> Span {
    Span {
        trace_id: vec![trace; 16],
        span_id: vec![id; 8],
        name: "chat".to_owned(),
        start_time_unix_nano: u64::try_from(TEST_START_MICROS).unwrap() * 1_000,
        end_time_unix_nano: u64::try_from(TEST_START_MICROS).unwrap() * 1_000 + 5,
        attributes: vec![
            attribute("gen_ai.usage.input_tokens", Any::IntValue(3)),
            attribute("session.id", Any::StringValue("s".to_owned())),
        ],
        ..Span::default()
    }
}

fn request(spans: Vec<Span>) -> ExportTraceServiceRequest {
    let scope = ScopeSpans { spans, ..ScopeSpans::default() };
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() }],
    }
}

async fn post(key: &Caller, body: Vec<u8>) -> Reply {
    key.post_bytes("/v1/otlp/traces", PROTOBUF_TYPE, body).await
}

/// Returns the number of rejected spans of a success.
fn rejected(reply: &Reply) -> i64 {
    assert_eq!(
        (reply.status, &reply.headers["content-type"]),
        (200, &PROTOBUF_TYPE.parse().unwrap()),
        "{}",
        reply.text()
    );
    let response = ExportTraceServiceResponse::decode(reply.body.as_slice()).unwrap();
    let partial = response.partial_success.unwrap_or_default();
    assert_eq!(partial.rejected_spans > 0, !partial.error_message.is_empty(), "{partial:?}");
    partial.rejected_spans
}

/// Encodes a length-delimited protobuf field.
fn delimited(tag: u8, inner: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag << 3 | 2];
    let mut rest = inner.len();
    while rest >= 128 {
        bytes.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    bytes.push(rest as u8);
    [bytes, inner.to_vec()].concat()
}

on_both_databases! {
    async fn truncated_otlp_message_is_parsed_or_rejected(app: TestApp) {
        let key = app.full_key();
        let whole = request(vec![span(1, 1)]).encode_to_vec();
        for length in 0..whole.len() {
            let reply = post(&key, whole[..length].to_vec()).await;
            assert!(matches!(reply.status, 200 | 400), "{length}: {}", reply.status);
            assert_eq!(reply.status == 200, length == 0, "{length}");
        }
        assert_eq!(count(&key).await, 0);
        let text = tests::otlp::request(&[tests::otlp::Span::new(1, 1, "s", TEST_START_MICROS)]).to_string();
        for length in 0..text.len() {
            key.post_bytes("/v1/otlp/traces", "application/json", text[..length].into()).await.is(400, "invalid_body");
        }
        assert_eq!(count(&key).await, 0);
        check_health(app).await;
    }

    async fn otlp_message_with_flipped_bit_never_fails_internally(app: TestApp) {
        let key = app.full_key();
        let whole = request(vec![span(1, 1)]).encode_to_vec();
        for bit in 0..whole.len() * 8 {
            let mut body = whole.clone();
            body[bit / 8] ^= 1 << (bit % 8);
            let reply = post(&key, body).await;
            assert!(matches!(reply.status, 200 | 400), "bit {bit}: {}", reply.status);
        }
        let text = tests::otlp::request(&[tests::otlp::Span::new(2, 1, "s", TEST_START_MICROS).with("k", 1).with("l", "v")]).to_string();
        for bit in 0..text.len() * 8 {
            let mut body = text.clone().into_bytes();
            body[bit / 8] ^= 1 << (bit % 8);
            let reply = key.post_bytes("/v1/otlp/traces", "application/json", body).await;
            assert!(matches!(reply.status, 200 | 400), "bit {bit}: {} {}", reply.status, reply.text());
        }
        // Stored spans can be listed and shown.
        let list = key.get("/v1/traces?limit=200").await.ok();
        for row in list["traces"].as_array().unwrap() {
            key.get(&format!("/v1/traces/{}", row["id"].as_str().unwrap())).await.ok();
        }
        check_health(app).await;
    }

    async fn span_with_invalid_id_is_rejected_alone(app: TestApp) {
        let key = app.full_key();
        let with = |trace: Vec<u8>, id: Vec<u8>, parent: Vec<u8>| Span { trace_id: trace, span_id: id, parent_span_id: parent, ..span(1, 1) };
        for (trace, id) in [(0, 8), (15, 8), (17, 8), (16, 0), (16, 7), (16, 9), (32, 16), (1_000, 8), (16, 1_000)] {
            let reply = post(&key, request(vec![with(vec![7; trace], vec![7; id], vec![])]).encode_to_vec()).await;
            assert_eq!(rejected(&reply), 1, "{trace} {id}");
        }
        // An id of zeros is invalid, as the protocol requires.
        assert_eq!(rejected(&post(&key, request(vec![with(vec![0; 16], vec![7; 8], vec![])]).encode_to_vec()).await), 1);
        assert_eq!(rejected(&post(&key, request(vec![with(vec![7; 16], vec![0; 8], vec![])]).encode_to_vec()).await), 1);
        assert_eq!(count(&key).await, 0);
        // A valid span next to invalid ones is stored.
        let mixed = request(vec![with(vec![], vec![], vec![]), span(9, 1), with(vec![1; 3], vec![1; 8], vec![])]).encode_to_vec();
        assert_eq!(rejected(&post(&key, mixed).await), 2);
        assert_eq!(count(&key).await, 1);
        check_health(app).await;
    }

    async fn extreme_attribute_values_are_stored(app: TestApp) {
        let key = app.full_key();
        let mut hostile = Vec::new();
        for (start, end) in [(0, 0), (u64::MAX, u64::MAX), (u64::MAX, 0), (0, u64::MAX), (1, 2), (i64::MAX as u64, i64::MAX as u64 + 1)] {
            hostile.push(Span { start_time_unix_nano: start, end_time_unix_nano: end, ..span(0, 0) });
        }
        let names = ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.cost", "llm.token_count.prompt", "session.id", "user.id", "gen_ai.request.model",
            "tags", "langfuse.trace.tags", "input.value", "gen_ai.input.messages", "metadata", "openinference.span.kind", "trace.complete", "error.type", ""];
        let list = |n: usize| Any::ArrayValue(opentelemetry_proto::tonic::common::v1::ArrayValue { values: vec![AnyValue { value: Some(Any::StringValue("x".repeat(9))) }; n] });
        for name in names {
            let values = [Any::IntValue(i64::MIN), Any::IntValue(i64::MAX), Any::DoubleValue(f64::NAN), Any::DoubleValue(f64::INFINITY), Any::DoubleValue(-1e308), Any::DoubleValue(1e308),
                Any::BoolValue(true), Any::StringValue("\0\u{1F600}".to_owned()), Any::StringValue("9".repeat(400)), Any::StringValue("{".repeat(10_000)),
                Any::StringValue("[".repeat(10_000)), Any::StringValue("x".repeat(100_000)), Any::BytesValue(vec![0xff; 100]), list(0), list(1_000)];
            for value in values {
                hostile.push(Span { attributes: vec![attribute(name, value)], ..span(0, 0) });
            }
            hostile.push(Span { attributes: vec![KeyValue { key: name.to_owned(), ..KeyValue::default() }], ..span(0, 0) });
        }
        let mut rng = fastrand::Rng::with_seed(7);
        let wide: String = (0..2_000).map(|_| char::from_u32(rng.u32(0x20000..0x2A6D0)).unwrap()).collect();
        for name in ["session.id", "user.id", "gen_ai.request.model", "langfuse.trace.name", "langfuse.trace.tags", "langfuse.release"] {
            hostile.push(Span { attributes: vec![attribute(name, Any::StringValue(wide.clone()))], name: wide.clone(), ..span(0, 0) });
        }
        hostile.push(Span { attributes: vec![attribute("langfuse.trace.metadata.k", Any::StringValue(wide.clone())), attribute("metadata", Any::StringValue(format!("{{\"{wide}\":1}}")))], ..span(0, 0) });
        hostile.push(Span { attributes: vec![attribute("tag.tags", Any::StringValue(format!("[\"{wide}:{wide}\"]"))), attribute("langfuse.trace.tags", Any::StringValue(format!("[\"{wide}:{wide}\"]")))], ..span(0, 0) });
        hostile.push(Span { attributes: (0..5_000).map(|i| attribute(&format!("k{i}"), Any::IntValue(i))).collect(), ..span(0, 0) });
        hostile.push(Span { name: String::new(), attributes: vec![], kind: i32::MAX, flags: u32::MAX, dropped_attributes_count: u32::MAX, ..span(0, 0) });
        for (i, mut span) in hostile.into_iter().enumerate() {
            span.trace_id = u128::try_from(i + 1).unwrap().to_be_bytes().to_vec();
            span.span_id = vec![1; 8];
            let what = format!("{:?}", span.attributes).chars().take(200).collect::<String>();
            let reply = post(&key, request(vec![span]).encode_to_vec()).await;
            assert_eq!(reply.status, 200, "{i} {what}: {}", reply.text());
            assert_eq!(rejected(&reply), 0, "{i}");
            key.get(&format!("/v1/traces/{:032x}", i + 1)).await.ok();
        }
        check_health(app).await;
    }

    async fn malformed_protobuf_message_is_rejected(app: TestApp) {
        let key = app.full_key();
        let good = request(vec![span(1, 1)]).encode_to_vec();
        // Unknown fields are skipped; a known field of the wrong wire type makes the message invalid.
        let unknown = [good.clone(), delimited(15, b"whatever"), vec![14 << 3, 5], vec![13 << 3 | 5, 1, 2, 3, 4], vec![12 << 3 | 1, 1, 2, 3, 4, 5, 6, 7, 8]].concat();
        assert_eq!(rejected(&post(&key, unknown).await), 0);
        let mut nested = Vec::new();
        for _ in 0..10_000 {
            nested = delimited(5, &delimited(1, &nested));
        }
        let attribute = [delimited(1, b"deep"), delimited(2, &nested)].concat();
        let deep_span = [delimited(1, &[5; 16]), delimited(2, &[5; 8]), delimited(9, &attribute)].concat();
        let deep = delimited(1, &delimited(2, &delimited(2, &deep_span)));
        let bad = [
            vec![0], vec![0xff; 100], vec![0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f], vec![0x0a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
            vec![0x08, 1], b"{}".to_vec(), b"<html>".to_vec(), vec![0x0b], vec![0x0c], deep,
        ];
        for body in bad {
            let reply = post(&key, body.clone()).await;
            assert_eq!((reply.status, reply.code().as_deref()), (400, Some("invalid_body")), "{:x?}", &body[..body.len().min(20)]);
            assert_eq!(reply.headers["content-type"], PROTOBUF_TYPE);
        }
        // Empty messages, and very many empty parts.
        for body in [vec![], [0x0a, 0].repeat(100_000), delimited(1, &[0x12, 0].repeat(100_000)), delimited(1, &delimited(2, &[0x12, 0].repeat(1_000)))] {
            let reply = post(&key, body).await;
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
        assert_eq!(count(&key).await, 1);
        check_health(app).await;
    }

    async fn malformed_otlp_json_is_rejected(app: TestApp) {
        let key = app.full_key();
        let span = |field: &str, value: Value| {
            let mut span = tests::otlp::Span::new(3, 3, "s", TEST_START_MICROS).json();
            span[field] = value;
            json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
        };
        let refused = |reply: &Reply| {
            let body: Value = reply.ok();
            body["partialSuccess"]["rejectedSpans"].as_str().map_or(0, |it| it.parse::<i64>().unwrap())
        };
        for body in ["", " ", "null", "[]", "1", "\"x\"", "{", "{]", r#"{"resourceSpans":1}"#, r#"{"resourceSpans":{}}"#, r#"{"resourceSpans":[1]}"#, r#"{"resourceSpans":[{"scopeSpans":5}]}"#,
            r#"{"resourceSpans":[{"scopeSpans":[{"spans":"x"}]}]}"#, r#"{"resourceSpans":"\ud800"}"#] {
            let reply = key.post_bytes("/v1/otlp/traces", "application/json", body.into()).await;
            assert_eq!((reply.status, reply.code().as_deref()), (400, Some("invalid_body")), "{body}: {}", reply.text());
            assert_eq!(reply.json()["code"], "invalid_body");
        }
        for body in [json!({}), json!({"resourceSpans": []}), json!({"resourceSpans": null}), json!({"unknown": [1]}), json!({"resourceSpans": [{}]}), json!({"resourceSpans": [{"scopeSpans": [{"spans": []}]}]})] {
            assert_eq!(refused(&key.post("/v1/otlp/traces", &body).await), 0, "{body}");
        }
        for (field, value) in [("traceId", json!("")), ("traceId", json!("xyz")), ("traceId", json!("0".repeat(32))), ("spanId", json!("00")), ("spanId", json!("0".repeat(16)))] {
            let reply = key.post("/v1/otlp/traces", &span(field, value.clone())).await;
            // Either the span or the body is rejected.
            assert!(reply.status == 400 || refused(&reply) == 1, "{field} {value}: {} {}", reply.status, reply.text());
        }
        let any = [json!(null), json!(1), json!(-1), json!(1.5), json!(true), json!("x"), json!([]), json!({}), json!([1]), json!("9".repeat(50)), json!(1e300)];
        let fields = ["traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes", "events", "links", "status", "traceState", "flags", "droppedAttributesCount"];
        for (field, value) in fields.iter().flat_map(|field| any.iter().map(move |value| (field, value))) {
            let reply = key.post("/v1/otlp/traces", &span(field, value.clone())).await;
            assert!(matches!(reply.status, 200 | 400), "{field} {value}: {} {}", reply.status, reply.text());
        }
        for value in ["stringValue", "boolValue", "intValue", "doubleValue", "arrayValue", "kvlistValue", "bytesValue", "unknownValue"] {
            for inner in &any {
                let reply = key.post("/v1/otlp/traces", &span("attributes", json!([{"key": "k", "value": {value: inner}}]))).await;
                assert!(matches!(reply.status, 200 | 400), "{value} {inner}: {} {}", reply.status, reply.text());
            }
        }
        for n in [100, 1_000, 50_000] {
            let nested = format!("{}{{\"intValue\":\"1\"}}{}", r#"{"arrayValue":{"values":["#.repeat(n), "]}}".repeat(n));
            let body = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"{:032x}","spanId":"00000000000000aa","name":"n","attributes":[{{"key":"k","value":{nested}}}]}}]}}]}}]}}"#, n);
            let reply = key.post_bytes("/v1/otlp/traces", "application/json", body.into_bytes()).await;
            assert!(matches!(reply.status, 200 | 400), "{n}: {}", reply.status);
        }
        check_health(app).await;
    }
}
