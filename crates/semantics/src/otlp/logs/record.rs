//! Turns a log record into an event of its span.

use std::collections::HashSet;

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value::Value},
    logs::v1::LogRecord,
    trace::v1::span::Event,
};

/// The name of an event that describes an exception.
const EXCEPTION_EVENT: &str = "exception";
/// Attributes of an exception (OpenTelemetry semantic conventions, exceptions in logs).
const EXCEPTION_ATTRIBUTES: &[&str] = &["exception.type", "exception.message"];
/// The attribute with the name of the event, before log records had a field for it.
const EVENT_NAME_ATTRIBUTE: &str = "event.name";
const RESPONSE_ID_ATTRIBUTE: &str = "gen_ai.response.id";

/// Why a log record is not stored.
pub(super) const UNRELATED_RECORD: &str = "the log record is neither a GenAI event nor an exception";
const MISSING_TRACE_ID: &str = "trace_id must be 16 bytes that are not all zero";
const MISSING_SPAN_ID: &str = "span_id must be 8 bytes that are not all zero";

/// A log record as an event of a span.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SpanEvent {
    /// The trace.
    pub(super) trace_id: [u8; 16],
    /// The span; all zero if the span is found by its response ID.
    pub(super) span_id: [u8; 8],
    /// The provider's response ID, of an evaluation without a span ID.
    pub(super) response_id: String,
    /// The event.
    pub(super) event: Event,
    /// When the SDK saw the log record, in nanoseconds since the epoch; it decides the order of records of the same time.
    pub(super) observed_at: u64,
}

/// Turns a log record into an event.
///
/// # Errors
///
/// Fails with the reason why the log record is not stored.
pub(super) fn to_event(record: LogRecord) -> Result<SpanEvent, &'static str> {
    let LogRecord {
        time_unix_nano,
        observed_time_unix_nano,
        body,
        mut attributes,
        trace_id,
        span_id,
        event_name,
        ..
    } = record;
    let name = name(event_name, &mut attributes).ok_or(UNRELATED_RECORD)?;
    let trace_id = id(&trace_id).ok_or(MISSING_TRACE_ID)?;
    let (span_id, response_id) = match id(&span_id) {
        Some(span_id) => (span_id, String::new()),
        None if is_evaluation(&name) => {
            ([0; 8], text_of(&attributes, RESPONSE_ID_ATTRIBUTE).ok_or(MISSING_SPAN_ID)?.to_owned())
        }
        None => return Err(MISSING_SPAN_ID),
    };
    add_body(&mut attributes, body, &name);
    let time_unix_nano = if time_unix_nano > 0 { time_unix_nano } else { observed_time_unix_nano };
    let event = Event { time_unix_nano, name, attributes, dropped_attributes_count: 0 };
    Ok(SpanEvent { trace_id, span_id, response_id, event, observed_at: observed_time_unix_nano })
}

/// Takes the name of the event; `None` for a log record that is neither a GenAI event nor an exception.
fn name(sent: String, attributes: &mut Vec<KeyValue>) -> Option<String> {
    let in_attributes =
        attributes.iter().position(|it| it.key == EVENT_NAME_ATTRIBUTE).map(|at| attributes.remove(at));
    let name = match in_attributes.and_then(|it| it.value?.value) {
        Some(Value::StringValue(name)) if sent.is_empty() => name,
        _ => sent,
    };
    if name.starts_with("gen_ai.") {
        return Some(name);
    }
    let has_exception = EXCEPTION_ATTRIBUTES.iter().any(|key| text_of(attributes, key).is_some());
    (name == EXCEPTION_EVENT || has_exception).then(|| EXCEPTION_EVENT.to_owned())
}

fn is_evaluation(name: &str) -> bool {
    matches!(name, "gen_ai.evaluation.result" | "gen_ai.evaluation")
}

/// Adds the body to the attributes. The members of a map become attributes, as those of events are; other bodies become
/// the content of a message, or the attribute `body`.
fn add_body(attributes: &mut Vec<KeyValue>, body: Option<AnyValue>, name: &str) {
    let Some(value) = body.and_then(|it| it.value) else { return };
    match value {
        Value::KvlistValue(members) => {
            let mut keys: HashSet<String> = attributes.iter().map(|it| it.key.clone()).collect();
            attributes.extend(members.values.into_iter().filter(|it| keys.insert(it.key.clone())));
        }
        Value::StringValue(text) if text.is_empty() => {}
        // A logger repeats the message of the exception.
        Value::StringValue(text) if text_of(attributes, "exception.message") == Some(&text) => {}
        value => {
            let is_message = name.ends_with(".message") || name == "gen_ai.choice";
            let key = if is_message { "content" } else { "body" };
            if attributes.iter().all(|it| it.key != key) {
                attributes.push(KeyValue {
                    key: key.to_owned(),
                    value: Some(AnyValue { value: Some(value) }),
                    key_strindex: 0,
                });
            }
        }
    }
}

fn text_of<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    match attributes.iter().find(|it| it.key == key)?.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

fn id<const N: usize>(sent: &[u8]) -> Option<[u8; N]> {
    sent.try_into().ok().filter(|id: &[u8; N]| id.iter().any(|byte| *byte != 0))
}
