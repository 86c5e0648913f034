//! Writes spans as OTLP JSON with the attributes of OpenTelemetry's GenAI conventions.
//!
//! Information that these attributes cannot represent is in the [`Record`] of each span, so that
//! importing an exported span restores it. The caller writes [`EXPORT_HEAD`], the spans separated by commas,
//! and [`EXPORT_TAIL`], so that a trace of any length can be written in chunks.

use std::{borrow::Cow, collections::BTreeMap};

use api::{SpanType, UsageDetails};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

pub use super::record::object;
use super::{record::RECORD_ATTRIBUTE, text::push_json_str};
pub use crate::record::{EventRecord, Record, TraceRecord};

/// Text before the spans of a request.
pub const EXPORT_HEAD: &str = r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"loupe"}}]},"scopeSpans":[{"scope":{"name":"loupe"},"spans":["#;
/// Text after the spans of a request.
pub const EXPORT_TAIL: &str = "]}]}]}";

/// `SPAN_KIND_INTERNAL` and `SPAN_KIND_CLIENT`.
const SPAN_KIND_INTERNAL: u8 = 1;
const SPAN_KIND_CLIENT: u8 = 3;
/// The latest time that 64-bit nanoseconds can represent, in microseconds.
const MAX_TIME_MICROS: i64 = 18_446_744_073_709_551;
/// Importers treat lists of at least this many numbers as vectors.
const MIN_VECTOR_NUMBERS: usize = 64;

/// A span to export. Times are Unix microseconds.
#[derive(Clone, Debug, Default)]
pub struct ExportSpan<'a> {
    /// The trace; its bytes are the OpenTelemetry trace ID.
    pub trace_id: Uuid,
    /// OpenTelemetry span ID.
    pub span_id: [u8; 8],
    /// OpenTelemetry span ID of the parent.
    pub parent_span_id: Option<[u8; 8]>,
    /// Name.
    pub name: &'a str,
    /// Start.
    pub start_us: i64,
    /// End.
    pub end_us: Option<i64>,
    /// The model in the response, else the requested model.
    pub model: Option<&'a str>,
    /// Input.
    pub input: Option<&'a str>,
    /// Output.
    pub output: Option<&'a str>,
    /// Error message.
    pub error: Option<&'a str>,
    /// Prompt tokens.
    pub prompt_tokens: Option<i64>,
    /// Completion tokens.
    pub completion_tokens: Option<i64>,
    /// Cached, cache-write and reasoning tokens.
    pub usage_details: UsageDetails,
    /// Cost in US dollars.
    pub cost_usd: Option<f64>,
    /// A JSON object.
    pub metadata: Option<&'a str>,
    /// Session ID.
    pub session_id: Option<&'a str>,
    /// End user.
    pub user_id: Option<&'a str>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Further properties; times and text encodings are filled in by this module.
    pub record: Record,
}

/// An event to export.
#[derive(Clone, Debug, Default)]
pub struct ExportEvent<'a> {
    /// Unix microseconds.
    pub at_us: i64,
    /// The message.
    pub message: &'a str,
    /// A JSON object.
    pub metadata: Option<&'a str>,
    /// Further properties; message, time and metadata are filled in by this module where needed.
    pub record: EventRecord,
}

/// Writes a span and its events as one JSON object.
pub fn write_span(out: &mut String, span: ExportSpan<'_>, events: Vec<ExportEvent<'_>>) {
    let mut record = span.record;
    let kind = if record.kind == SpanType::Llm { SPAN_KIND_CLIENT } else { SPAN_KIND_INTERNAL };
    push_all(out, &["{\"traceId\":\"", &span.trace_id.simple().to_string(), "\",\"spanId\":\""]);
    push_hex(out, span.span_id);
    if let Some(parent) = span.parent_span_id {
        out.push_str("\",\"parentSpanId\":\"");
        push_hex(out, parent);
    }
    out.push_str("\",\"name\":");
    push_json_str(out, span.name);
    push_all(out, &[",\"kind\":", &kind.to_string()]);
    push_time(out, "startTimeUnixNano", Some(span.start_us), &mut record.start);
    push_time(out, "endTimeUnixNano", span.end_us, &mut record.end);
    if let Some(error) = span.error {
        out.push_str(",\"status\":{\"code\":2,\"message\":");
        push_json_str(out, error);
        out.push('}');
    }
    out.push_str(",\"attributes\":[");
    let mut attributes = AttributeList::new(out);
    conventional(&mut attributes, &record.kind, span.name, span.metadata);
    let failure = record.failure.map(api::FailureType::as_str);
    attributes.text("error.type", failure);
    attributes.text("gen_ai.response.model", span.model);
    attributes.number("gen_ai.usage.input_tokens", span.prompt_tokens);
    attributes.number("gen_ai.usage.output_tokens", span.completion_tokens);
    let UsageDetails { cached_input_tokens, cache_write_tokens, reasoning_tokens } = span.usage_details;
    attributes.number("gen_ai.usage.cache_read.input_tokens", cached_input_tokens);
    attributes.number("gen_ai.usage.cache_creation.input_tokens", cache_write_tokens);
    attributes.number("gen_ai.usage.reasoning.output_tokens", reasoning_tokens);
    if let Some(cost) = span.cost_usd.filter(|it| it.is_finite()) {
        attributes.raw("gen_ai.usage.cost", "doubleValue", &format!("{cost:?}"));
    }
    attributes.text("session.id", span.session_id);
    attributes.text("gen_ai.conversation.id", span.session_id);
    attributes.text("user.id", span.user_id);
    attributes.tags(&span.tags);
    if let Some(input) = span.input {
        let key = input_key(&record.kind);
        record.plain_input = attributes.text_or_message(key, "input.value", "user", input);
        record.empty_input = input.is_empty();
    }
    if let Some(output) = span.output {
        let key = output_key(&record.kind, output);
        record.plain_output = attributes.text_or_message(key, "output.value", "assistant", output);
        record.empty_output = output.is_empty();
    }
    attributes.text("metadata", span.metadata);
    record.empty_metadata = span.metadata == Some("{}");
    attributes.text(RECORD_ATTRIBUTE, serde_json::to_string(&record).ok().as_deref());
    out.push(']');
    write_events(out, events);
    out.push('}');
}

/// Writes the attributes that the convention defines for a span of this type.
fn conventional(attributes: &mut AttributeList<'_>, kind: &SpanType, name: &str, metadata: Option<&str>) {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct KnownMetadata<'a> {
        #[serde(borrow)]
        request_model: Option<Cow<'a, str>>,
        #[serde(borrow)]
        tool: Option<ToolMetadata<'a>>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct ToolMetadata<'a> {
        #[serde(borrow)]
        name: Option<Cow<'a, str>>,
        #[serde(borrow)]
        call_id: Option<Cow<'a, str>>,
    }
    let known: KnownMetadata<'_> = metadata.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    let tool = known.tool.unwrap_or_default();
    match kind {
        SpanType::Llm => {
            attributes.text("gen_ai.operation.name", Some("chat"));
            attributes.text("gen_ai.request.model", known.request_model.as_deref());
        }
        SpanType::Tool => {
            attributes.text("gen_ai.operation.name", Some("execute_tool"));
            attributes.text("gen_ai.tool.name", Some(tool.name.as_deref().unwrap_or(name)));
            attributes.text("gen_ai.tool.call.id", tool.call_id.as_deref());
        }
        SpanType::Retrieval => attributes.text("gen_ai.operation.name", Some("retrieval")),
        _ => {}
    }
}

/// Returns the attribute for the input; `None` if the convention defines none.
fn input_key(kind: &SpanType) -> Option<&'static str> {
    match kind {
        SpanType::Llm => Some("gen_ai.input.messages"),
        SpanType::Tool => Some("gen_ai.tool.call.arguments"),
        SpanType::Retrieval => Some("gen_ai.retrieval.query.text"),
        _ => None,
    }
}

fn output_key(kind: &SpanType, text: &str) -> Option<&'static str> {
    match kind {
        SpanType::Llm => Some("gen_ai.output.messages"),
        SpanType::Tool => Some("gen_ai.tool.call.result"),
        // Documents are a list; a text is not.
        SpanType::Retrieval if text.starts_with('[') => Some("gen_ai.retrieval.documents"),
        _ => None,
    }
}

/// Returns whether a text is a message or a list of messages.
fn is_messages(text: &str) -> bool {
    #[derive(Deserialize)]
    struct RoleMessage {
        #[expect(dead_code, reason = "only the presence is checked")]
        role: serde::de::IgnoredAny,
    }
    match text.as_bytes().first() {
        Some(b'[') => serde_json::from_str::<Vec<RoleMessage>>(text).is_ok(),
        Some(b'{') => serde_json::from_str::<RoleMessage>(text).is_ok(),
        _ => false,
    }
}

fn write_events(out: &mut String, events: Vec<ExportEvent<'_>>) {
    if events.is_empty() {
        return;
    }
    out.push_str(",\"events\":[");
    for (i, ExportEvent { at_us, message, metadata, mut record }) in events.into_iter().enumerate() {
        let members: serde_json::Map<String, Value> =
            metadata.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
        let is_exception = members.keys().any(|it| it.starts_with("exception."));
        record.message = is_exception.then(|| message.to_owned());
        let is_representable = !members.is_empty() && members.values().all(is_plain);
        record.metadata = metadata.filter(|_| !is_representable).map(str::to_owned);
        out.push_str(if i > 0 { ",{\"name\":" } else { "{\"name\":" });
        push_json_str(out, if is_exception { "exception" } else { message });
        push_time(out, "timeUnixNano", Some(at_us), &mut record.at);
        out.push_str(",\"attributes\":[");
        let mut attributes = AttributeList::new(out);
        for (key, value) in members.iter().filter(|(_, it)| is_plain(it)) {
            attributes.value(key, value);
        }
        attributes.text(RECORD_ATTRIBUTE, serde_json::to_string(&record).ok().as_deref());
        out.push_str("]}");
    }
    out.push(']');
}

/// Returns whether an attribute with this value is imported as the same JSON: no blank text, no fraction (whose
/// last digit may be lost), and no list that is treated as a vector.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(_) => true,
        Value::Number(number) => number.is_i64(),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => {
            !items.is_empty() && items.len() < MIN_VECTOR_NUMBERS && items.iter().all(is_plain)
        }
        Value::Object(members) => !members.is_empty() && members.values().all(is_plain),
    }
}

/// Writes a time; a time that nanoseconds cannot represent is stored in the record.
fn push_time(out: &mut String, name: &str, micros: Option<i64>, record: &mut Option<i64>) {
    match micros {
        Some(it) if (1..=MAX_TIME_MICROS).contains(&it) => {
            push_all(out, &[",\"", name, "\":\"", &it.to_string(), "000\""]);
        }
        other => *record = other,
    }
}

/// A list of attributes under construction.
struct AttributeList<'a> {
    out: &'a mut String,
    first: bool,
}

impl<'a> AttributeList<'a> {
    fn new(out: &'a mut String) -> Self {
        Self { out, first: true }
    }

    fn key(&mut self, key: &str) {
        self.out.push_str(if self.first { "{\"key\":" } else { ",{\"key\":" });
        self.first = false;
        push_json_str(self.out, key);
        self.out.push_str(",\"value\":");
    }

    /// Adds a text unless it is empty.
    fn text(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text.filter(|it| !it.is_empty()) {
            self.key(key);
            self.out.push_str("{\"stringValue\":");
            push_json_str(self.out, text);
            self.out.push_str("}}");
        }
    }

    fn number(&mut self, key: &str, number: Option<i64>) {
        if let Some(number) = number {
            self.raw(key, "intValue", &format!("\"{number}\""));
        }
    }

    fn raw(&mut self, key: &str, kind: &str, json: &str) {
        self.key(key);
        push_all(self.out, &["{\"", kind, "\":", json, "}}"]);
    }

    fn value(&mut self, key: &str, value: &Value) {
        self.key(key);
        push_any(self.out, value);
        self.out.push('}');
    }

    fn tags(&mut self, tags: &BTreeMap<String, String>) {
        if tags.is_empty() {
            return;
        }
        let word = |(key, value): (&String, &String)| {
            Value::from(if value.is_empty() { key.clone() } else { format!("{key}:{value}") })
        };
        self.value("tag.tags", &tags.iter().map(word).collect());
    }

    /// Adds a text under the convention's key, else under the other key. If the key requires messages,
    /// plain text is wrapped in a message; returns whether it was wrapped.
    fn text_or_message(&mut self, key: Option<&str>, other: &str, role: &str, text: &str) -> bool {
        let is_plain = key.is_some_and(|it| it.ends_with(".messages")) && !is_messages(text);
        if is_plain && !text.is_empty() {
            let mut message = String::with_capacity(text.len() + 64);
            push_all(&mut message, &["[{\"role\":\"", role, "\",\"parts\":[{\"type\":\"text\",\"content\":"]);
            push_json_str(&mut message, text);
            message.push_str("}]}]");
            self.text(key.unwrap_or(other), Some(&message));
        } else {
            self.text(key.unwrap_or(other), Some(text));
        }
        is_plain
    }
}

/// Writes JSON as an OTLP value.
fn push_any(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("{}"),
        Value::Bool(it) => push_all(out, &["{\"boolValue\":", if *it { "true" } else { "false" }, "}"]),
        Value::Number(it) if it.is_i64() => push_all(out, &["{\"intValue\":\"", &it.to_string(), "\"}"]),
        Value::Number(it) => push_all(out, &["{\"doubleValue\":", &it.to_string(), "}"]),
        Value::String(it) => {
            out.push_str("{\"stringValue\":");
            push_json_str(out, it);
            out.push('}');
        }
        Value::Array(items) => {
            out.push_str("{\"arrayValue\":{\"values\":[");
            for (i, it) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                push_any(out, it);
            }
            out.push_str("]}}");
        }
        Value::Object(members) => {
            out.push_str("{\"kvlistValue\":{\"values\":[");
            let mut list = AttributeList::new(out);
            for (key, it) in members {
                list.value(key, it);
            }
            out.push_str("]}}");
        }
    }
}

fn push_hex(out: &mut String, bytes: [u8; 8]) {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    out.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
}

fn push_all(out: &mut String, texts: &[&str]) {
    out.extend(texts.iter().copied());
}
