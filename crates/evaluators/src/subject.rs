//! What is judged: a trace, or one span of it, as evaluators see it.
//!
//! A [`Subject`] is what the database has; [`Reading`] is what can be told from it, whichever
//! convention its spans were sent in.

use std::collections::BTreeMap;

use api::SpanType;
use serde_json::{Map, Value};
use uuid::Uuid;

mod calls;
mod documents;
mod json;
mod messages;
mod prompted;
mod python;
mod reading;
mod tools;

pub use calls::Call;
pub use documents::Document;
pub use messages::Message;
pub use reading::Reading;
pub use tools::Tool;
pub(crate) use tools::read as read_tools;

/// A trace as evaluators see it. When one span was asked for, `name`, `input`, `output`, `error`,
/// `model`, `latency_ms`, `cost`, the tokens and `metadata` are that span's, and `steps` begins
/// with it and holds what is below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subject {
    /// The trace's name.
    pub name: Option<String>,
    /// Text or JSON text that went in.
    pub input: Option<String>,
    /// Text or JSON text that came out.
    pub output: Option<String>,
    /// Why it failed; none when it ended well.
    pub error: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// Wall-clock milliseconds.
    pub latency_ms: Option<i64>,
    /// US dollars; none when no price is known.
    pub cost: Option<f64>,
    /// None when no span reports any.
    pub prompt_tokens: Option<i64>,
    /// None when no span reports any.
    pub completion_tokens: Option<i64>,
    /// Tags by key.
    pub tags: BTreeMap<String, String>,
    /// Free data of the caller.
    pub metadata: Map<String, Value>,
    /// The spans in order of start, at most 2,000.
    pub steps: Vec<Step>,
    /// Earlier traces of the same session, oldest first, at most 50; none without a session.
    pub turns: Vec<Turn>,
}

/// One span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Its id.
    pub id: Uuid,
    /// The span that caused it.
    pub parent: Option<Uuid>,
    /// What was done.
    pub name: String,
    /// Kind of work.
    pub kind: SpanType,
    /// Text or JSON text that went in.
    pub input: Option<String>,
    /// Text or JSON text that came out.
    pub output: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// Free data: `tool`, `documents`, and attributes under their own names (see
    /// `semantics::draft::SpanDraft::metadata`).
    pub metadata: Map<String, Value>,
}

/// An earlier exchange of the same session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    /// What went in.
    pub input: Option<String>,
    /// What came out.
    pub output: Option<String>,
}
