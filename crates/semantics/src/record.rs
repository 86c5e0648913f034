//! Records: the properties that Loupe adds to exported spans and events.
//!
//! [`crate::otlp::export`] writes them as JSON into the attribute `loupe.record`, and the import restores them. They
//! are untrusted input, so ingest validates their values like all others.

use api::{FailureType, SpanType};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Properties of a span that OpenTelemetry's attributes cannot represent. Times are Unix microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The span's ID, if it does not follow from OpenTelemetry's 8 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// The parent's ID, if it does not follow from OpenTelemetry's 8 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Uuid>,
    /// The span's type.
    pub kind: SpanType,
    /// The start, if 64-bit nanoseconds cannot represent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<i64>,
    /// The end, if 64-bit nanoseconds cannot represent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<i64>,
    /// Latency in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<i64>,
    /// Class of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureType>,
    /// Hash of the provider's response ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<i64>,
    /// Cost in pico-dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<i64>,
    /// Whether the input's message only wraps a plain text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub plain_input: bool,
    /// Whether the output's message only wraps a plain text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub plain_output: bool,
    /// Whether the input is an empty text, which an attribute cannot represent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub empty_input: bool,
    /// Whether the output is an empty text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub empty_output: bool,
    /// Whether the metadata is an empty object.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub empty_metadata: bool,
    /// Input of the whole trace, if the span contains it separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_input: Option<String>,
    /// Output of the whole trace, if the span contains it separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_output: Option<String>,
    /// Trace hints, in stored form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<serde_json::Value>,
    /// Properties of the trace that do not follow from its spans; on its first span only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceRecord>,
    /// Whether the trace has no spans and this one only carries its properties.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub carrier: bool,
}

/// Properties of a trace that were sent for it as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceRecord {
    /// Stored form of the trace's properties.
    pub given: serde_json::Value,
    /// Input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// A JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
}

/// Properties of an event that its name and attributes cannot represent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventRecord {
    /// The event's ID.
    pub id: Uuid,
    /// Whether the event belongs to no span, or to a missing one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stray: bool,
    /// The missing span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Uuid>,
    /// The message, if it differs from the event's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `debug`, `info`, `warning`, `error`, or another word.
    pub level: String,
    /// The time, if 64-bit nanoseconds cannot represent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// JSON of the metadata, if attributes cannot represent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
}
