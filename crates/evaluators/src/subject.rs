//! The subject of an evaluation: a trace, or one of its spans, as evaluators see it.
//!
//! A [`Subject`] contains the stored data. A [`Reading`] is derived from it and does not depend on the
//! convention of the spans.

use std::collections::BTreeMap;

use api::SpanType;
use serde_json::{Map, Value};
use uuid::Uuid;

mod calls;
mod documents;
mod json;
mod measures;
mod messages;
mod prompted;
mod python;
mod reading;
mod tools;

pub use calls::Call;
pub use documents::Document;
pub(crate) use measures::is_cost_within;
pub use messages::Message;
pub use reading::Reading;
pub use tools::Tool;
pub(crate) use tools::read as read_tools;

/// A trace as evaluators see it. If one span was requested, `name`, `input`, `output`, `error`, `model`,
/// `latency_ms`, `cost`, the tokens and `metadata` are those of that span, and `steps` contains that span
/// followed by its descendants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subject {
    /// The trace's name.
    pub name: Option<String>,
    /// The input: text or JSON text.
    pub input: Option<String>,
    /// The output: text or JSON text.
    pub output: Option<String>,
    /// The error; none if the trace succeeded.
    pub error: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The wall-clock latency in milliseconds.
    pub latency_ms: Option<i64>,
    /// The cost in US dollars; none if no price is known.
    pub cost: Option<f64>,
    /// The number of prompt tokens; none if no span reports it.
    pub prompt_tokens: Option<i64>,
    /// The number of completion tokens; none if no span reports it.
    pub completion_tokens: Option<i64>,
    /// Tags by key.
    pub tags: BTreeMap<String, String>,
    /// The metadata of the sender.
    pub metadata: Map<String, Value>,
    /// The spans in order of start, at most 2,000.
    pub steps: Vec<Step>,
    /// Earlier traces of the same session, oldest first, at most 50; none without a session.
    pub turns: Vec<ConversationTurn>,
}

/// One span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// The ID of the span.
    pub id: Uuid,
    /// The ID of the parent span.
    pub parent: Option<Uuid>,
    /// The name of the operation.
    pub name: String,
    /// The span type.
    pub kind: SpanType,
    /// The input: text or JSON text.
    pub input: Option<String>,
    /// The output: text or JSON text.
    pub output: Option<String>,
    /// The error; none if the span succeeded.
    pub error: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The metadata: `tool`, `documents`, and attributes under their own names (see
    /// `semantics::draft::SpanDraft::metadata`).
    pub metadata: Map<String, Value>,
}

/// An earlier exchange of the same session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConversationTurn {
    /// The input.
    pub input: Option<String>,
    /// The output.
    pub output: Option<String>,
}
