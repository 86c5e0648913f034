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
pub use messages::{Message, ToolResult};
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

/// A model call as a span recorded it, independent of the convention of the span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedCall {
    /// The parsed input, if it is JSON.
    pub input: Option<Value>,
    /// The messages in the input; a plain text is one message of the user.
    pub messages: Vec<Message>,
    /// The tools that were offered to the model.
    pub tools: Vec<Tool>,
}

impl RecordedCall {
    /// Derives the call from the input and the metadata of a span. There are no messages if the input has none.
    pub fn of(input: Option<&str>, metadata: Map<String, Value>) -> Self {
        let mut budget = json::Budget::new();
        let text = input.filter(|it| !it.trim().is_empty());
        let parsed = text.and_then(|it| budget.parse(it));
        let messages = match (&parsed, text) {
            (Some(value), _) => messages::read(value).unwrap_or_default(),
            (None, Some(text)) => {
                vec![Message { role: "user".to_owned(), text: text.to_owned(), ..Message::default() }]
            }
            (None, None) => Vec::new(),
        };
        let step = Step {
            kind: SpanType::Llm,
            input: input.map(str::to_owned),
            metadata: metadata.clone(),
            ..Step::default()
        };
        let subject = Subject { metadata, steps: vec![step], ..Subject::default() };
        Self { tools: tools::of(&subject, &mut budget), input: parsed, messages }
    }
}
