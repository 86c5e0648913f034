//! Tests of whole spans: precedence of conventions, rejected spans, remaining metadata.
#![allow(clippy::unwrap_used)]

use api::FailureType;
use opentelemetry_proto::tonic::{common::v1::KeyValue, trace::v1::span::Event};

use super::*;

fn sent(pairs: &[(&str, &str)]) -> Span {
    Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        name: "span".to_owned(),
        start_time_unix_nano: 2_000_000,
        end_time_unix_nano: 5_000_000,
        attributes: list(pairs),
        ..Span::default()
    }
}

fn list(pairs: &[(&str, &str)]) -> Vec<KeyValue> {
    super::super::attributes::tests::attributes(pairs).into_rest()
}

fn read(pairs: &[(&str, &str)]) -> SpanDraft {
    span(sent(pairs), "scope", "").unwrap()
}

#[test]
fn invalid_span_ids_are_rejected() {
    let refused = |given: Span| span(given, "", "").is_err();
    assert!(refused(Span { trace_id: vec![0; 16], ..sent(&[]) }));
    assert!(refused(Span { trace_id: vec![1; 15], ..sent(&[]) }));
    assert!(refused(Span { span_id: Vec::new(), ..sent(&[]) }));
    assert!(refused(Span { parent_span_id: vec![1; 7], ..sent(&[]) }));
    let root = span(Span { parent_span_id: vec![0; 8], ..sent(&[]) }, "", "").unwrap();
    assert_eq!(root.parent_span_id, None);
}

#[test]
fn times_are_microseconds_in_order() {
    let times = |start, end| {
        let span =
            span(Span { start_time_unix_nano: start, end_time_unix_nano: end, ..sent(&[]) }, "", "").unwrap();
        (span.start_us, span.end_us)
    };
    assert_eq!(times(2_000_000, 5_000_000), (Some(2_000), Some(5_000)));
    assert_eq!(times(5_000_000, 2_000_000), (Some(5_000), Some(5_000)));
    assert_eq!(times(0, 0), (None, None));
    assert_eq!(times(u64::MAX, u64::MAX).0, Some(18_446_744_073_709_551));
}

#[test]
fn cached_tokens_of_strands_depend_on_the_requested_model() {
    let cached_in_prompt = |model: &str| {
        let pairs = [
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.request.model", model),
            ("gen_ai.usage.input_tokens", "3000"),
            ("gen_ai.usage.cache_read_input_tokens", "500"),
        ];
        span(sent(&pairs), "strands.telemetry.tracer", "").unwrap().usage.cached_in_prompt
    };
    assert!(!cached_in_prompt("us.anthropic.claude-sonnet-4-20250514-v1:0"));
    assert!(cached_in_prompt("gpt-4o"));
}

#[test]
fn sdk_span_kind_takes_precedence_over_convention() {
    let kind = |pairs: &[(&str, &str)]| read(pairs).span_type;
    assert_eq!(
        kind(&[("openinference.span.kind", "CHAIN"), ("gen_ai.operation.name", "chat")]),
        SpanType::Other
    );
    assert_eq!(
        kind(&[("langfuse.observation.type", "generation"), ("traceloop.span.kind", "task")]),
        SpanType::Llm
    );
    assert_eq!(
        kind(&[("gen_ai.operation.name", "vector_db_retrieve"), ("traceloop.span.kind", "task")]),
        SpanType::Retrieval
    );
    assert_eq!(kind(&[("gen_ai.tool.name", "f")]), SpanType::Tool);
    assert_eq!(kind(&[("gen_ai.tool.name", "f"), ("gen_ai.request.model", "m")]), SpanType::Other);
    assert_eq!(kind(&[("gen_ai.usage.input_tokens", "1"), ("gen_ai.request.model", "m")]), SpanType::Llm);
    assert_eq!(kind(&[("db.system", "qdrant")]), SpanType::Retrieval);
    assert_eq!(kind(&[]), SpanType::Other);
}

#[test]
fn value_repeated_by_two_conventions_is_stored_once() {
    let messages = r#"[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]"#;
    let span = read(&[
        ("openinference.span.kind", "LLM"),
        ("gen_ai.input.messages", messages),
        ("input.value", "Hi"),
        ("input.mime_type", "text/plain"),
        ("llm.input_messages.0.message.role", "user"),
        ("output.value", "Hello"),
        ("llm.model_name", "m-1"),
        ("gen_ai.response.model", "m-1"),
        ("gen_ai.request.model", "m"),
    ]);
    assert_eq!(span.input.as_deref(), Some(messages));
    assert_eq!(span.output.as_deref(), Some("Hello"));
    assert_eq!(span.model.as_deref(), Some("m-1"));
    assert_eq!(span.metadata, r#"{"request_model":"m","openinference.span.kind":"LLM"}"#);
}

#[test]
fn tool_span_has_name_arguments_and_result() {
    let span = read(&[
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "f"),
        ("gen_ai.tool.call.id", "call-a"),
        ("gen_ai.tool.call.arguments", r#"{"city":"Z\u00fcrich"}"#),
        ("gen_ai.tool.call.result", r#""sunny""#),
    ]);
    assert_eq!(
        (span.input.as_deref(), span.output.as_deref()),
        (Some(r#"{"city":"Zürich"}"#), Some("sunny"))
    );
    assert_eq!(
        span.metadata,
        r#"{"tool":{"name":"f","call_id":"call-a"},"gen_ai.operation.name":"execute_tool"}"#
    );
}

#[test]
fn documents_are_the_output_or_metadata() {
    let documents =
        [("retrieval.documents.0.document.id", "d"), ("retrieval.documents.0.document.score", "x")];
    let alone = read(&documents);
    assert_eq!(alone.span_type, SpanType::Retrieval);
    assert_eq!(alone.output.as_deref(), Some(r#"[{"id":"d","score":"x"}]"#));
    let beside = read(&[documents[0], ("output.value", "summary")]);
    assert_eq!(beside.output.as_deref(), Some("summary"));
    assert_eq!(beside.metadata, r#"{"documents":[{"id":"d"}]}"#);
}

#[test]
fn error_is_classified_by_the_first_conclusive_evidence() {
    let failed = |message: &str, pairs: &[(&str, &str)], exception: &[(&str, &str)]| {
        let events = match exception {
            [] => Vec::new(),
            pairs => {
                vec![Event { name: "exception".to_owned(), attributes: list(pairs), ..Event::default() }]
            }
        };
        let status = Some(Status { code: STATUS_ERROR, message: message.to_owned() });
        let span = span(Span { status, events, ..sent(pairs) }, "", "").unwrap();
        (span.error.unwrap(), span.failure.unwrap())
    };
    assert_eq!(
        failed("late", &[], &[("exception.type", "TimeoutError")]),
        ("late".to_owned(), FailureType::Timeout)
    );
    assert_eq!(
        failed("", &[], &[("exception.message", "Rate limit reached")]),
        ("Rate limit reached".to_owned(), FailureType::RateLimit)
    );
    assert_eq!(
        failed("", &[("error.type", "rate_limit_error"), ("http.response.status_code", "429")], &[]),
        ("rate_limit_error".to_owned(), FailureType::RateLimit)
    );
    assert_eq!(failed("", &[], &[]), ("error".to_owned(), FailureType::Other));
    assert_eq!(read(&[("error.type", "x")]).error, None, "the status decides");
    let noted =
        read(&[("langfuse.observation.level", "ERROR"), ("langfuse.observation.status_message", "no")]);
    assert_eq!(noted.error.as_deref(), Some("no"));
}

#[test]
fn sent_cost_is_used_for_successful_model_calls_only() {
    let cost = ("gen_ai.usage.cost", "0.25");
    assert_eq!(read(&[cost, ("gen_ai.operation.name", "chat")]).sent_cost, Some(0.25));
    assert_eq!(read(&[cost, ("gen_ai.operation.name", "invoke_agent")]).sent_cost, None);
    let failed = Span {
        status: Some(Status { code: 2, ..Status::default() }),
        ..sent(&[cost, ("gen_ai.operation.name", "chat")])
    };
    assert_eq!(span(failed, "", "").unwrap().sent_cost, None);
}

#[test]
fn aggregated_usage_is_not_counted() {
    let span =
        read(&[("gen_ai.operation.name", "invoke_agent"), ("gen_ai.aggregated_usage.input_tokens", "9")]);
    assert!(!span.usage.is_reported());
    assert!(span.metadata.contains(r#""gen_ai.aggregated_usage.input_tokens":9"#));
}

#[test]
fn nul_is_removed_from_every_text() {
    let span = span(
        Span {
            name: "na\0me".to_owned(),
            status: Some(Status { code: 2, message: "er\0ror".to_owned() }),
            ..sent(&[("input.value", "in\0put"), ("k\0ey", "va\0lue"), ("session.id", "se\0ssion")])
        },
        "",
        "",
    )
    .unwrap();
    assert_eq!(span.name, "na\u{fffd}me");
    assert_eq!(span.error.as_deref(), Some("er\u{fffd}ror"));
    assert_eq!(span.input.as_deref(), Some("in\u{fffd}put"));
    assert_eq!(span.metadata, "{\"k\u{fffd}ey\":\"va\u{fffd}lue\"}");
    assert_eq!(span.hints.session_id.as_deref(), Some("se\u{fffd}ssion"));
}

#[test]
fn vectors_are_removed_from_metadata() {
    let span = read(&[
        ("openinference.span.kind", "EMBEDDING"),
        ("embedding.embeddings.0.embedding.vector", "[1,2]"),
        ("output.value", "[1,2]"),
        ("ai.embeddings", "[1,2]"),
    ]);
    assert_eq!(span.output, None);
    assert_eq!(span.metadata, r#"{"openinference.span.kind":"EMBEDDING"}"#);
}
