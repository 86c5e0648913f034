//! Malformed, hostile and unusual request bodies are rejected or parsed without a panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fs, path::Path};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, ArrayValue, KeyValue, any_value::Value},
    trace::v1::{ResourceSpans, ScopeSpans, Span},
};
use proptest::prelude::*;
use prost::Message as _;
use semantics::otlp::{Decoded, MAX_DESCRIBED_SPANS, from_json, from_protobuf};

fn fixture(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/otlp").join(name)).unwrap()
}

/// Checks the invariants of every decoded request.
fn check(decoded: &Decoded) {
    let mut accepted = 0;
    for span in decoded.groups.iter().flat_map(|group| &group.spans) {
        accepted += 1;
        assert!(serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&span.metadata).is_ok());
        for event in &span.events {
            assert!(serde_json::from_str::<serde_json::Value>(&event.metadata).is_ok());
            assert!(!event.message.contains('\0'));
        }
        let texts =
            [&span.input, &span.output, &span.error, &span.model, &span.response_id, &span.hints.session_id];
        assert!(texts.into_iter().flatten().all(|text| !text.contains('\0')));
        assert_eq!(span.error.is_some(), span.failure.is_some());
        assert!(span.usage.prompt.is_none_or(|count| count >= 0));
        assert!(span.sent_cost.is_none_or(|cost| cost.is_finite() && cost > 0.0));
    }
    assert_eq!(accepted, decoded.accepted);
    assert_eq!(decoded.rejections.len(), decoded.rejected.min(MAX_DESCRIBED_SPANS));
    assert!(decoded.rejections.is_sorted_by(|left, right| left.index < right.index));
}

#[test]
fn truncated_request_is_parsed_or_rejected() {
    let body = fixture("openinference-openai/err_rate_limit/01.pb");
    for end in 0..body.len() {
        if let Ok(decoded) = from_protobuf(&body[..end]) {
            check(&decoded);
        }
    }
    let body = fixture("vercel-ai5-json/err_rate_limit/01.json");
    for end in 0..body.len().min(6_000) {
        assert!(from_json(&body[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn request_with_flipped_bit_is_parsed_or_rejected() {
    let body = fixture("agents-logfire/err_timeout/01.pb");
    for bit in 0..body.len().min(600) * 8 {
        let mut flipped = body.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Ok(decoded) = from_protobuf(&flipped) {
            check(&decoded);
        }
    }
}

#[test]
fn deeply_nested_request_is_bounded() {
    let mut value = AnyValue { value: Some(Value::IntValue(1)) };
    for _ in 0..500 {
        let list = ArrayValue { values: vec![std::mem::take(&mut value)] };
        value = AnyValue { value: Some(Value::ArrayValue(list)) };
    }
    let body = one_span(vec![KeyValue { key: "deep".to_owned(), value: Some(value), key_strindex: 0 }]);
    assert!(from_protobuf(&body.encode_to_vec()).is_err());
    let json = format!("{{\"resourceSpans\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    assert!(from_json(json.as_bytes()).is_err());
}

#[test]
fn attributes_beyond_the_index_are_kept() {
    let attribute = |at: usize| KeyValue {
        key: format!("retrieval.documents.{at}.document.id"),
        value: Some(AnyValue { value: Some(Value::IntValue(1)) }),
        key_strindex: 0,
    };
    let decoded =
        from_protobuf(&one_span((0..70_000).rev().map(attribute).collect()).encode_to_vec()).unwrap();
    check(&decoded);
    assert_eq!(decoded.accepted, 1);
}

fn one_span(attributes: Vec<KeyValue>) -> ExportTraceServiceRequest {
    let span = Span { trace_id: vec![1; 16], span_id: vec![1; 8], attributes, ..Span::default() };
    let scope_spans = vec![ScopeSpans { spans: vec![span], ..ScopeSpans::default() }];
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }],
    }
}

/// Keys that conventions map, so that unusual values reach the mapping code.
const MAPPED_KEYS: &[&str] = &[
    "openinference.span.kind",
    "gen_ai.operation.name",
    "langfuse.observation.type",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "langfuse.observation.usage_details",
    "langfuse.observation.cost_details",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.cost",
    "llm.input_messages.0.message.content",
    "llm.input_messages.99999999999.x..y",
    "gen_ai.completion.0.content",
    "retrieval.documents.0.document.id",
    "metadata",
    "metadata.a",
    "tag.tags",
    "session.id",
    "events",
    "request_data",
    "response_data",
    "response",
    "error",
    "output",
    "logfire.msg_template",
    "traceloop.entity.output",
    "resource",
    "",
];

fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "\\PC*",
        "[\\[\\]{}\",:a\\\\u0d89]{0,24}",
        Just("[{\"role\":\"assistant\",\"content\":null}]".to_owned()),
        Just("{\"output\":[{\"type\":\"message\",\"content\":[]}]}".to_owned()),
        Just("\"\\ud800\"".to_owned()),
        Just("\0".to_owned()),
    ];
    let leaf = prop_oneof![
        4 => text.prop_map(Value::StringValue),
        1 => any::<i64>().prop_map(Value::IntValue),
        1 => any::<f64>().prop_map(Value::DoubleValue),
        1 => any::<bool>().prop_map(Value::BoolValue),
        1 => any::<Vec<u8>>().prop_map(Value::BytesValue),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop::collection::vec(inner, 0..3).prop_map(|values| {
            let values = values.into_iter().map(|value| AnyValue { value: Some(value) }).collect();
            Value::ArrayValue(ArrayValue { values })
        })
    })
}

proptest! {
    #[test]
    fn arbitrary_attributes_never_panic(pairs in prop::collection::vec((prop::sample::select(MAPPED_KEYS), any_value()), 0..12)) {
        let attributes = pairs
            .into_iter()
            .map(|(key, value)| KeyValue {
                key: key.to_owned(),
                value: Some(AnyValue { value: Some(value) }),
                key_strindex: 0,
            })
            .collect();
        let request = one_span(attributes);
        let decoded = from_protobuf(&request.encode_to_vec()).unwrap();
        prop_assert_eq!(decoded.accepted, 1);
        check(&decoded);
    }

    #[test]
    fn arbitrary_bytes_are_parsed_or_rejected(body in prop::collection::vec(any::<u8>(), 0..512)) {
        let _ = from_protobuf(&body);
        let _ = from_json(&body);
    }

    #[test]
    fn arbitrary_json_is_parsed_or_rejected(
        body in "(\\{\"resourceSpans\":)?[\\[\\]{}\":,a0-9\\\\u]{0,64}(\"scopeSpans\":\\[\\{\"spans\":\\[\\{)?[\\[\\]{}\":,a0-9]{0,32}"
    ) {
        let _ = from_json(body.as_bytes());
    }
}
