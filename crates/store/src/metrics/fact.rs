//! Trace facts: the values of a trace that metrics count.

use std::sync::Arc;

use api::feedback::FeedbackLabel;
use entities::trace;

/// The facts of one trace. Equal facts are interchangeable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fact {
    /// Start, microseconds.
    pub at: i64,
    /// Model.
    pub model: Option<Arc<str>>,
    /// Whether the trace ended in error.
    pub error: bool,
    /// Label of its newest feedback, as stored in the trace's row.
    pub feedback: Option<i16>,
    /// Latency in milliseconds.
    pub latency_ms: Option<i64>,
    /// Cost in pico-dollars; 0 if there is none.
    pub cost: i64,
    /// Number of tokens; 0 if there are none.
    pub tokens: i64,
}

impl From<&trace::Model> for Fact {
    fn from(trace: &trace::Model) -> Self {
        Self {
            at: trace.started_at,
            model: trace.model.as_deref().map(Arc::from),
            error: trace.error.is_some(),
            feedback: trace.feedback,
            latency_ms: trace.latency_ms.map(|it| it.max(0)),
            cost: trace.cost.unwrap_or(0),
            tokens: trace.total_tokens,
        }
    }
}

/// Returns the stored form of a feedback label.
pub const fn stored_label(label: FeedbackLabel) -> i16 {
    match label {
        FeedbackLabel::Neutral => 0,
        FeedbackLabel::Good => 1,
        FeedbackLabel::Bad => 2,
    }
}

/// Whether a stored label is `good`.
pub const fn is_good(stored: i16) -> bool {
    stored == stored_label(FeedbackLabel::Good)
}
