//! What one OTLP request says, in the service's own words and independent of the sender's convention.
//!
//! Drafts carry what was sent: which usage counts towards a trace is decided in
//! [`crate::rollup`], prices in [`crate::cost`], ids and projects by the caller.

use api::{FailureType, SpanType};

use crate::{
    otlp::export::{EventRecord, Record},
    usage::Usage,
};

/// The spans of one OTLP resource, in the order sent.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct ResourceGroup {
    /// The project the resource asks for (`openinference.project.name`).
    pub project_name: Option<String>,
    /// The spans that could be read.
    pub spans: Vec<SpanDraft>,
}

/// One span, mapped.
///
/// No text contains a NUL character; an empty text is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanDraft {
    /// Never all zero.
    pub trace_id: [u8; 16],
    /// Never all zero.
    pub span_id: [u8; 8],
    /// `None` for a root.
    pub parent_span_id: Option<[u8; 8]>,
    /// Name to show.
    pub name: String,
    /// What the span did.
    pub span_type: SpanType,
    /// Unix microseconds; `None` when the sender left it out.
    pub start_us: Option<i64>,
    /// Unix microseconds, not before the start; `None` when the sender left it out.
    pub end_us: Option<i64>,
    /// Text or JSON text that went in.
    pub input: Option<String>,
    /// Text or JSON text that came out. The answer of a model is its plain text where it is nothing but text.
    pub output: Option<String>,
    /// Why the span failed; `None` when it did not.
    pub error: Option<String>,
    /// The kind of failure; set exactly when `error` is.
    pub failure: Option<FailureType>,
    /// The model that answered, else the one asked.
    pub model: Option<String>,
    /// The requested model, if another one answered. Its price applies when that of the answering model is
    /// unknown.
    pub request_model: Option<String>,
    /// The provider's id of the answer, by which two spans of one call are recognised.
    pub response_id: Option<String>,
    /// Token counts as sent.
    pub usage: Usage,
    /// US dollars by the sender's own estimate; only on spans that call a model, never of a failed call.
    pub sent_cost: Option<f64>,
    /// What the span says about its trace.
    pub hints: TraceHints,
    /// Input of the whole trace, where the convention tells it apart.
    pub trace_input: Option<String>,
    /// Output of the whole trace, where the convention tells it apart.
    pub trace_output: Option<String>,
    /// Text of a JSON object: attributes that no other field holds under their own names, the
    /// user's own metadata under its bare keys, and `resource`, `scope`, `tool`, `documents`,
    /// `request_model`, `response_id` where known.
    pub metadata: String,
    /// Span events that say something.
    pub events: Vec<EventDraft>,
    /// Evaluations that the sender made of this span.
    pub evaluations: Vec<EvaluationDraft>,
    /// What Loupe itself said of a span that it exported; it stands in place of what would be derived.
    pub record: Option<Box<Record>>,
}

/// What a span says about the trace it is part of. The root's word counts first.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct TraceHints {
    /// The trace's name, where it differs from the root span's.
    pub name: Option<String>,
    /// The conversation.
    pub session_id: Option<String>,
    /// The end user.
    pub user_id: Option<String>,
    /// The sender's own id of the trace (`trace.external_id`).
    pub external_id: Option<String>,
    /// Key and value; the value is empty for a bare tag. In the order sent, keys may repeat.
    pub tags: Vec<(String, String)>,
    /// The sender says that no more spans will come (`trace.complete`).
    pub complete: bool,
}

/// A span event.
#[derive(Debug, Clone, PartialEq)]
pub struct EventDraft {
    /// Unix microseconds; `None` when the sender left it out.
    pub time_us: Option<i64>,
    /// The exception's message, else the event's name.
    pub message: String,
    /// `error` for exceptions, else `info`.
    pub level: &'static str,
    /// Text of a JSON object: the event's attributes.
    pub metadata: String,
    /// What Loupe itself said of an event that it exported.
    pub record: Option<EventRecord>,
}

/// An evaluation that arrived with a span (`gen_ai.evaluation.*`).
#[derive(Debug, Default, Clone, PartialEq)]
pub struct EvaluationDraft {
    /// What was measured.
    pub name: String,
    /// The number given; any finite scale.
    pub score: Option<f64>,
    /// The word given.
    pub label: Option<String>,
    /// The reason given.
    pub explanation: Option<String>,
}
