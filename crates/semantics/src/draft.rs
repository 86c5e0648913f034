//! The decoded contents of an OTLP request, independent of the sender's convention.
//!
//! Drafts contain the values that the client sent. [`crate::rollup`] decides which usage counts towards a trace,
//! [`crate::cost`] computes prices, and the caller assigns IDs and projects.

use std::sync::Arc;

use api::{FailureType, SpanType};

use crate::{
    record::{EventRecord, Record},
    usage::Usage,
};

/// The spans of one OTLP resource, in the order sent.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct ResourceGroup {
    /// The project that the resource names (`openinference.project.name`).
    pub project_name: Option<String>,
    /// The valid spans.
    pub spans: Vec<SpanDraft>,
    /// Those of the spans that log records may complete, as they were received.
    pub held: Vec<HeldSpan>,
}

/// A span that log records may complete, as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldSpan {
    /// The trace.
    pub trace_id: [u8; 16],
    /// The OpenTelemetry span ID.
    pub span_id: [u8; 8],
    /// The encoded resource and scope, which the spans of a scope share.
    pub shared: Arc<[u8]>,
    /// The encoded span.
    pub span: Vec<u8>,
}

/// A span after mapping.
///
/// Texts contain no NUL character; an empty text is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanDraft {
    /// The OpenTelemetry trace ID; never all zero.
    pub trace_id: [u8; 16],
    /// The OpenTelemetry span ID; never all zero.
    pub span_id: [u8; 8],
    /// `None` for a root span.
    pub parent_span_id: Option<[u8; 8]>,
    /// Display name.
    pub name: String,
    /// Type of the operation.
    pub span_type: SpanType,
    /// Start in Unix microseconds; `None` if not sent.
    pub start_us: Option<i64>,
    /// End in Unix microseconds, not before the start; `None` if not sent.
    pub end_us: Option<i64>,
    /// Input as text or JSON.
    pub input: Option<String>,
    /// Output as text or JSON. A model's response that consists of text only is plain text.
    pub output: Option<String>,
    /// Error message; `None` on success.
    pub error: Option<String>,
    /// Class of the error; set exactly when `error` is set.
    pub failure: Option<FailureType>,
    /// The model in the response, else the requested model.
    pub model: Option<String>,
    /// The requested model, if a different one responded. Its price applies when the price of the
    /// responding model is unknown.
    pub request_model: Option<String>,
    /// The provider's response ID, by which several spans of one call are recognized.
    pub response_id: Option<String>,
    /// Token counts as sent.
    pub usage: Usage,
    /// The sender's own cost in US dollars; only for successful model calls.
    pub sent_cost: Option<f64>,
    /// Properties of the trace that the span contains.
    pub hints: TraceHints,
    /// Input of the whole trace, if the convention sends it separately.
    pub trace_input: Option<String>,
    /// Output of the whole trace, if the convention sends it separately.
    pub trace_output: Option<String>,
    /// A JSON object with unmapped attributes under their names, the application's metadata under its own
    /// keys, and `resource`, `scope`, `tool`, `documents`, `request_model`, `response_id` where known.
    pub metadata: String,
    /// The span's events, without those mapped to other fields.
    pub events: Vec<EventDraft>,
    /// External evaluations of this span.
    pub evaluations: Vec<EvaluationDraft>,
    /// The record of a span exported by Loupe; it replaces all derived values.
    pub record: Option<Box<Record>>,
}

/// Properties of a trace that one of its spans contains. Those of the root span take precedence.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct TraceHints {
    /// Name of the trace, if it differs from the root span's.
    pub name: Option<String>,
    /// Session ID.
    pub session_id: Option<String>,
    /// End user.
    pub user_id: Option<String>,
    /// The sender's own ID of the trace (`trace.external_id`).
    pub external_id: Option<String>,
    /// Tags in the order sent; the value is empty for a tag without value. Keys may repeat.
    pub tags: Vec<(String, String)>,
    /// Whether the sender declares the trace complete (`trace.complete`).
    pub complete: bool,
    /// Whether the span's parent is in another process.
    pub has_remote_parent: bool,
}

/// A span event.
#[derive(Debug, Clone, PartialEq)]
pub struct EventDraft {
    /// Unix microseconds; `None` if not sent.
    pub time_us: Option<i64>,
    /// The exception's message, else the event's name.
    pub message: String,
    /// `error` for exceptions, else `info`.
    pub level: &'static str,
    /// Text of a JSON object: the event's attributes.
    pub metadata: String,
    /// The record of an event exported by Loupe.
    pub record: Option<EventRecord>,
}

/// An evaluation that arrived with a span (`gen_ai.evaluation.*`).
#[derive(Debug, Default, Clone, PartialEq)]
pub struct EvaluationDraft {
    /// Name of the metric.
    pub name: String,
    /// The score, on any finite scale.
    pub score: Option<f64>,
    /// The label.
    pub label: Option<String>,
    /// The explanation.
    pub explanation: Option<String>,
}
