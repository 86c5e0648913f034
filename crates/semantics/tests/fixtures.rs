//! Compares the decoded spans of real SDKs with expectations.
//!
//! Every scenario under `tests/fixtures/otlp` is decoded, merged by span ID and rolled up, then
//! compared with its `expect.json`. Intentional differences are listed in `deviations.json` beside
//! them, with reasons; an entry that no longer applies fails the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::Read,
    path::Path,
};

use api::{FailureType, SpanType};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use semantics::{
    draft::SpanDraft,
    money, otlp,
    rollup::{Rollup, SpanFacts, rollup},
};
use serde_json::Value;
use uuid::Uuid;

use expectation::{
    Differences, assert_only_deviations, joined, name_of, read_json, root, scenarios_of, session, text,
};

#[path = "../../../tests/src/expectation.rs"]
mod expectation;

#[test]
fn every_captured_payload_matches_its_expectation() {
    let mut differences = Vec::new();
    let mut scenarios = 0;
    for scenario in scenarios_of(&root()) {
        scenarios += 1;
        for difference in check(&scenario) {
            differences.push((name_of(&scenario), difference));
        }
    }
    assert!(scenarios > 200, "only {scenarios} scenarios found");
    assert_only_deviations(&differences);
}

#[test]
fn both_otlp_encodings_give_the_same_spans() {
    let mut compared = 0;
    for scenario in scenarios_of(&root()) {
        let Ok(body) = fs::read(scenario.join("01.pb")) else { continue };
        let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
        let json = serde_json::to_vec(&request).unwrap();
        let [from_protobuf, from_json] = [otlp::from_protobuf(&body), otlp::from_json(&json)];
        assert!(shown(&from_protobuf) == shown(&from_json), "{}", scenario.display());
        compared += 1;
    }
    assert!(compared > 100, "only {compared} bodies compared");
}

/// Formats a result without fractions, whose last digit JSON's parser may lose.
fn shown(result: &Result<otlp::Decoded, otlp::Malformed>) -> String {
    let mut in_fraction = false;
    let mut text = format!("{result:?}");
    text.retain(|character| {
        in_fraction = character == '.' || (in_fraction && character.is_ascii_digit());
        !in_fraction
    });
    text
}

/// Returns the differences between a scenario and its expectation.
fn check(scenario: &Path) -> Vec<String> {
    let expect = read_json(&scenario.join("expect.json"));
    let mut differences = Differences::default();
    let spans = spans_of(scenario, &expect, &mut differences);
    differences.equal("span count", spans.len(), &expect["span_count"]);
    for expected in expect["spans"].as_array().unwrap() {
        match spans.get(&(text(&expected["otel_trace_id"]), text(&expected["otel_span_id"]))) {
            Some(span) => check_span(span, expected, &mut differences),
            None => differences.note(format!("{} is missing", expected["name"])),
        }
    }
    for expected in expect["traces"].as_array().unwrap() {
        let id = text(&expected["otel_trace_id"]);
        let members: Vec<&SpanDraft> =
            spans.iter().filter(|((trace, _), _)| *trace == id).map(|(_, span)| span).collect();
        check_trace(&members, expected, &mut differences);
    }
    differences.0
}

type Spans = BTreeMap<(String, String), SpanDraft>;

/// Decodes and merges the scenario's requests; a repeated span adds nothing.
fn spans_of(scenario: &Path, expect: &Value, differences: &mut Differences) -> Spans {
    let mut spans = Spans::new();
    for request in expect["requests"].as_array().unwrap() {
        let name = request.as_str().unwrap();
        let sent = fs::read(scenario.join(name)).unwrap();
        let (name, body) = match name.strip_suffix(".gz") {
            Some(name) => {
                let mut body = Vec::new();
                flate2::read::GzDecoder::new(sent.as_slice()).read_to_end(&mut body).unwrap();
                (name, body)
            }
            None => (name, sent),
        };
        let decoded =
            if name.ends_with(".json") { otlp::from_json(&body) } else { otlp::from_protobuf(&body) }
                .unwrap();
        if decoded.rejected > 0 {
            differences.note(format!("{} spans refused: {:?}", decoded.rejected, decoded.rejections));
        }
        for span in decoded.groups.into_iter().flat_map(|group| group.spans) {
            spans.entry((hex(&span.trace_id), hex(&span.span_id))).or_insert(span);
        }
    }
    spans
}

fn check_span(span: &SpanDraft, expected: &Value, differences: &mut Differences) {
    let name = text(&expected["name"]);
    let about = |what: &str| format!("{name}: {what}");
    // Name templates are filled in.
    if !name.contains('{') {
        differences.equal(&about("name"), span.name.as_str(), &expected["name"]);
    }
    differences.equal(
        &about("parent"),
        span.parent_span_id.map(|it| hex(&it)),
        &expected["parent_otel_span_id"],
    );
    differences.one_of(&about("type"), span.span_type.as_str(), &expected["type_any_of"]);
    if !expected["model_any_of"].is_null() {
        differences.one_of(&about("model"), span.model.as_deref(), &expected["model_any_of"]);
    }
    differences.equal(&about("prompt tokens"), span.usage.prompt, &expected["prompt_tokens"]);
    differences.equal(&about("completion tokens"), span.usage.completion, &expected["completion_tokens"]);
    if !expected["cached_tokens"].is_null() {
        differences.equal(&about("cached tokens"), span.usage.cached, &expected["cached_tokens"]);
    }
    if !expected["reasoning_tokens"].is_null() {
        differences.equal(&about("reasoning tokens"), span.usage.reasoning, &expected["reasoning_tokens"]);
    }
    // Zero is not a price: SDKs send it for failed calls and for unknown models.
    let sent_cost =
        expected["cost_usd_sent"].as_f64().filter(|cost| *cost > 0.0 && span.span_type == SpanType::Llm);
    differences.equal(&about("cost"), span.sent_cost, &sent_cost.map_or(Value::Null, Value::from));
    differences.equal(&about("failed"), span.error.is_some(), &expected["error"]);
    if let Some(part) = expected["error_contains"].as_str() {
        differences.contains(&about("error"), span.error.as_deref(), part);
    }
    differences.one_of(&about("failure"), failure(span.failure), &expected["failure_type_any_of"]);
    if let Some(part) = expected["input_contains"].as_str() {
        differences.contains(&about("input"), span.input.as_deref(), part);
    }
    if let Some(part) = expected["output_contains"].as_str() {
        differences.contains(&about("output"), span.output.as_deref(), part);
    }
    differences.equal(&about("session"), span.hints.session_id.as_deref(), &session(expected));
    differences.equal(&about("user"), span.hints.user_id.as_deref(), &expected["user_id"]);
    differences.equal(&about("tags"), tags(&span.hints.tags), &joined(&expected["tags"]));
    check_metadata(span, expected, &about, differences);
    for text in [&span.input, &span.output, &span.error, &Some(span.metadata.clone())].into_iter().flatten() {
        assert!(!text.contains('\0') && !text.is_empty(), "{name}");
    }
}

fn check_metadata(
    span: &SpanDraft,
    expected: &Value,
    about: &dyn Fn(&str) -> String,
    differences: &mut Differences,
) {
    let metadata: Value = serde_json::from_str(&span.metadata).expect("metadata is JSON");
    assert!(metadata.is_object());
    if !expected["tool_name"].is_null() {
        differences.equal(&about("tool"), metadata["tool"]["name"].as_str(), &expected["tool_name"]);
    }
    if let Some(count) = expected["retrieval_documents"].as_u64() {
        let found = match &metadata["documents"] {
            Value::Null => serde_json::from_str(span.output.as_deref().unwrap_or("null")).unwrap_or_default(),
            documents => documents.clone(),
        };
        differences.equal(&about("documents"), found.as_array().map(Vec::len), &Value::from(count));
    }
}

fn check_trace(spans: &[&SpanDraft], expected: &Value, differences: &mut Differences) {
    let about = |what: &str| format!("trace {}: {what}", expected["root_span_name"]);
    differences.equal(&about("span count"), spans.len(), &expected["span_count"]);
    let facts: Vec<SpanFacts<'_>> = spans.iter().map(|span| facts(span)).collect();
    let Rollup { root, error, model, prompt_tokens, completion_tokens, .. } = rollup(&facts);
    differences.equal(&about("root"), root.map(|at| hex(&spans[at].span_id)), &expected["root_otel_span_id"]);
    differences.equal(&about("root failed"), root.is_some() && error.is_some(), &expected["root_error"]);
    differences.equal(
        &about("any span failed"),
        spans.iter().any(|span| span.error.is_some()),
        &expected["any_span_error"],
    );
    differences.equal(&about("prompt tokens"), prompt_tokens.unwrap_or(0), &expected["prompt_tokens_total"]);
    differences.equal(
        &about("completion tokens"),
        completion_tokens.unwrap_or(0),
        &expected["completion_tokens_total"],
    );
    if expected["models"].as_array().is_some_and(|models| !models.is_empty()) {
        differences.one_of(
            &about("model"),
            model.and_then(|at| spans[at].model.as_deref()),
            &expected["models"],
        );
    }
    let failures: BTreeSet<_> = spans.iter().filter_map(|span| failure(span.failure)).collect();
    for missing in expected["failure_types"].as_array().unwrap().iter().filter_map(Value::as_str) {
        if !failures.contains(missing) {
            differences.note(about(&format!("no span failed by {missing}")));
        }
    }
    // The root's value takes precedence, then that of the first span that has one.
    let told = |what: &dyn Fn(&SpanDraft) -> Option<String>| {
        root.and_then(|at| what(spans[at])).or_else(|| spans.iter().find_map(|span| what(span)))
    };
    differences.equal(&about("user"), told(&|span| span.hints.user_id.clone()), &expected["user_id"]);
    differences.equal(&about("tags"), told(&|span| tags(&span.hints.tags)), &joined(&expected["tags"]));
    if let Some(session) = expected["session_id"].as_str().filter(|it| !it.starts_with("[Scrubbed")) {
        differences.equal(
            &about("session"),
            told(&|span| span.hints.session_id.clone()),
            &Value::from(session),
        );
    }
}

fn facts(span: &SpanDraft) -> SpanFacts<'_> {
    let uuid = |id: &[u8; 8]| Uuid::from_u64_pair(0, u64::from_be_bytes(*id));
    SpanFacts {
        id: uuid(&span.span_id),
        parent: span.parent_span_id.as_ref().map(uuid),
        start_us: span.start_us.unwrap(),
        end_us: span.end_us,
        latency_ms: None,
        is_llm: span.span_type == SpanType::Llm,
        model: span.model.as_deref(),
        has_error: span.error.is_some(),
        failure: span.failure,
        prompt: span.usage.prompt,
        completion: span.usage.completion,
        usage_details: span.usage.details(),
        cost_pico: span.sent_cost.and_then(money::from_usd),
        has_input: span.input.is_some(),
        has_output: span.output.is_some(),
        response_id: span.response_id.as_ref().map(|id| {
            let mut hasher = DefaultHasher::new();
            id.hash(&mut hasher);
            hasher.finish()
        }),
        literal: false,
    }
}

/// Expectations omit failures of type `other`.
fn failure(failure: Option<FailureType>) -> Option<&'static str> {
    failure.filter(|it| *it != FailureType::Other).map(FailureType::as_str)
}

/// Returns the tags as one text, to compare them as a whole.
fn tags(tags: &[(String, String)]) -> Option<String> {
    let tags: Vec<String> = tags
        .iter()
        .map(|(key, value)| if value.is_empty() { key.clone() } else { format!("{key}:{value}") })
        .collect();
    (!tags.is_empty()).then(|| tags.join(","))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
