//! The record: information that Loupe adds to exported spans, so that importing them restores the
//! trace.
//!
//! An exported span uses OpenTelemetry's attributes where possible; the rest is a JSON object in the
//! attribute `loupe.record`. A span with a record is parsed here and not by the conventions: its texts
//! are taken as they are and nothing is derived. Writing is [`super::export`]. Records are untrusted
//! input, so ingest validates their values like all others.

use super::{attributes::Attributes, keys::Key, text, time, value};
use crate::{
    draft::{EventDraft, SpanDraft, TraceHints},
    record::{EventRecord, Record},
    usage::Usage,
};
use opentelemetry_proto::tonic::{
    common::v1::any_value::Value,
    trace::v1::{Status, span::Event},
};

/// The attribute that holds a record.
pub(super) const RECORD_ATTRIBUTE: &str = "loupe.record";
/// `STATUS_CODE_ERROR`.
const STATUS_ERROR: i32 = 2;
/// Keys of the texts of an exported span; one key of each list is present.
const INPUT_KEYS: &[Key] =
    &[Key::InputMessages, Key::ToolCallArguments, Key::RetrievalQuery, Key::InputValue];
const OUTPUT_KEYS: &[Key] =
    &[Key::OutputMessages, Key::ToolCallResult, Key::RetrievalDocuments, Key::OutputValue];

/// Parses the record of a span; an invalid record remains an attribute.
pub(super) fn of(attributes: &Attributes) -> Option<Record> {
    serde_json::from_str(attributes.str(Key::LoupeRecord)?).ok()
}

/// IDs and times of a span as sent.
pub(super) struct SpanFrame {
    pub(super) trace_id: [u8; 16],
    pub(super) span_id: [u8; 8],
    pub(super) parent_span_id: Option<[u8; 8]>,
    pub(super) name: String,
    pub(super) start_us: Option<i64>,
    pub(super) end_us: Option<i64>,
    pub(super) status: Option<Status>,
    pub(super) events: Vec<Event>,
}

/// Returns the draft of an exported span.
pub(super) fn draft(frame: SpanFrame, mut attributes: Attributes, record: Record) -> SpanDraft {
    let SpanFrame { trace_id, span_id, parent_span_id, name, start_us, end_us, status, events } = frame;
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
        input: take_text(&mut attributes, INPUT_KEYS, record.plain_input).or(empty(record.empty_input)),
        output: take_text(&mut attributes, OUTPUT_KEYS, record.plain_output).or(empty(record.empty_output)),
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

fn take_text(attributes: &mut Attributes, keys: &[Key], is_plain: bool) -> Option<String> {
    let text = attributes.take_first(keys)?;
    if is_plain { text::plain_answer(&text).or(Some(text)) } else { Some(text) }
}

fn count(attributes: &mut Attributes, key: Key) -> Option<i64> {
    match attributes.take(key)? {
        Value::IntValue(count) if count >= 0 => Some(count),
        _ => None,
    }
}

/// Returns the text of a JSON object without NUL; `None` if it is not an object.
pub fn object(json: String) -> Option<String> {
    let is_object = json.trim_start().starts_with('{')
        && serde_json::from_str::<std::collections::BTreeMap<String, serde::de::IgnoredAny>>(&json).is_ok();
    is_object.then(|| json.replace("\\u0000", "\\ufffd"))
}

fn event(event: Event) -> Option<EventDraft> {
    let Event { time_unix_nano, name, mut attributes, .. } = event;
    let at = attributes.iter().position(|it| it.key == RECORD_ATTRIBUTE)?;
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
