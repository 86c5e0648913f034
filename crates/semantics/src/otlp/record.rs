//! What Loupe adds to the spans that it exports, so that importing them gives the same trace.
//!
//! An exported span says in the words of OpenTelemetry what these can say; the rest is a JSON
//! object in the attribute `loupe.record`. A span that carries one is read here and not by the
//! conventions: its texts are taken as they are and nothing is derived anew. Writing is
//! [`super::export`]. A record comes from outside like everything else, so whoever stores it
//! holds its values to the limits of all others.

use api::{FailureType, SpanType};
use opentelemetry_proto::tonic::{
    common::v1::any_value::Value,
    trace::v1::{Status, span::Event},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{attributes::Attributes, keys::Key, text, time, value};
use crate::{
    draft::{EventDraft, SpanDraft, TraceHints},
    usage::Usage,
};

/// The attribute that holds a record.
pub(super) const ATTRIBUTE: &str = "loupe.record";
/// `STATUS_CODE_ERROR`.
const STATUS_ERROR: i32 = 2;
/// Where the texts of an exported span are; one of each list is there.
const INPUTS: &[Key] = &[Key::InputMessages, Key::ToolCallArguments, Key::RetrievalQuery, Key::InputValue];
const OUTPUTS: &[Key] =
    &[Key::OutputMessages, Key::ToolCallResult, Key::RetrievalDocuments, Key::OutputValue];

/// What a span's attributes of OpenTelemetry don't say. Times are Unix microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The span's id, where it does not follow from the 8 bytes of OpenTelemetry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// The parent's id, in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Uuid>,
    /// The span's type.
    pub kind: SpanType,
    /// The start, where nanoseconds since 1970 can't say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<i64>,
    /// The end, in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<i64>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<i64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureType>,
    /// Hash of the provider's id of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<i64>,
    /// Pico-dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<i64>,
    /// The input's message is only the dress of a plain text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub plain_input: bool,
    /// The same of the output.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub plain_output: bool,
    /// The input is there, and empty: an attribute can't say that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub empty_input: bool,
    /// The same of the output.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub empty_output: bool,
    /// The same of the metadata: there, and without a member.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub empty_metadata: bool,
    /// Input of the whole trace, as the span tells it apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_input: Option<String>,
    /// Output of the whole trace, as the span tells it apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_output: Option<String>,
    /// What the span says about its trace, as it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<serde_json::Value>,
    /// What is known of the whole trace and not from its spans; on its first span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceRecord>,
    /// The trace has no spans: this one is only there to carry it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub carrier: bool,
}

/// What was given for a trace as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceRecord {
    /// As it is stored.
    pub given: serde_json::Value,
    /// What went in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// What came out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Text of a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
}

/// What an event's name and attributes don't say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventRecord {
    /// The event's id.
    pub id: Uuid,
    /// It belongs to no span, or to one that is not there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stray: bool,
    /// The span that is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Uuid>,
    /// The message, where the event's name is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `debug`, `info`, `warning`, `error`, or as given.
    pub level: String,
    /// The time, where nanoseconds since 1970 can't say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// Text of the metadata, where attributes can't say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
}

/// The record of a span, if it has a readable one. What is no record stays an attribute.
pub(super) fn of(attributes: &Attributes) -> Option<Record> {
    serde_json::from_str(attributes.str(Key::LoupeRecord)?).ok()
}

/// The ids and times of a span, as they were sent.
pub(super) struct Frame {
    pub(super) trace_id: [u8; 16],
    pub(super) span_id: [u8; 8],
    pub(super) parent_span_id: Option<[u8; 8]>,
    pub(super) name: String,
    pub(super) start_us: Option<i64>,
    pub(super) end_us: Option<i64>,
    pub(super) status: Option<Status>,
    pub(super) events: Vec<Event>,
}

/// The draft of an exported span.
pub(super) fn draft(frame: Frame, mut attributes: Attributes, record: Record) -> SpanDraft {
    let Frame { trace_id, span_id, parent_span_id, name, start_us, end_us, status, events } = frame;
    let error = status.filter(|it| it.code == STATUS_ERROR).map(|it| text::clean(it.message));
    let empty = |is_empty: bool| is_empty.then(String::new);
    SpanDraft {
        trace_id,
        span_id,
        parent_span_id,
        name: text::clean(name),
        span_type: record.kind.clone(),
        start_us: record.start.or(start_us),
        end_us: record.end.or(end_us),
        input: said(&mut attributes, INPUTS, record.plain_input).or(empty(record.empty_input)),
        output: said(&mut attributes, OUTPUTS, record.plain_output).or(empty(record.empty_output)),
        failure: error.as_ref().and(record.failure),
        error,
        model: attributes.take_text(Key::ResponseModel),
        request_model: None,
        response_id: None,
        usage: Usage {
            prompt: count(&mut attributes, Key::UsageInput),
            completion: count(&mut attributes, Key::UsageOutput),
            cached: count(&mut attributes, Key::UsageCacheRead),
            cache_write: count(&mut attributes, Key::UsageCacheCreation),
            reasoning: count(&mut attributes, Key::UsageReasoningOutput),
            ..Usage::default()
        },
        sent_cost: None,
        hints: TraceHints::default(),
        trace_input: record.trace_input.clone().map(text::clean),
        trace_output: record.trace_output.clone().map(text::clean),
        metadata: attributes.take_text(Key::Metadata).and_then(object).unwrap_or_else(|| "{}".to_owned()),
        events: events.into_iter().filter_map(event).collect(),
        evaluations: Vec::new(),
        record: Some(Box::new(record)),
    }
}

fn said(attributes: &mut Attributes, keys: &[Key], is_plain: bool) -> Option<String> {
    let text = attributes.take_first(keys)?;
    if is_plain { text::plain_answer(&text).or(Some(text)) } else { Some(text) }
}

fn count(attributes: &mut Attributes, key: Key) -> Option<i64> {
    match attributes.take(key)? {
        Value::IntValue(count) if count >= 0 => Some(count),
        _ => None,
    }
}

/// The text of a JSON object without NUL; none if it is something else.
pub fn object(json: String) -> Option<String> {
    let is_object = json.trim_start().starts_with('{')
        && serde_json::from_str::<std::collections::BTreeMap<String, serde::de::IgnoredAny>>(&json).is_ok();
    is_object.then(|| json.replace("\\u0000", "\\ufffd"))
}

fn event(event: Event) -> Option<EventDraft> {
    let Event { time_unix_nano, name, mut attributes, .. } = event;
    let at = attributes.iter().position(|it| it.key == ATTRIBUTE)?;
    let sent = value::into_text(attributes.remove(at).value?.value?)?;
    let record: EventRecord = serde_json::from_str(&sent).ok()?;
    let metadata = record.metadata.clone().and_then(object).unwrap_or_else(|| {
        let mut out = String::new();
        value::write_object(&mut out, &attributes);
        out
    });
    Some(EventDraft {
        time_us: record.at.or(time(time_unix_nano)),
        message: text::clean(record.message.clone().unwrap_or(name)),
        level: "info",
        metadata,
        record: Some(record),
    })
}
