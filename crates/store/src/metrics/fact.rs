//! What a trace is to the metrics.

use std::sync::Arc;

use api::feedback::FeedbackLabel;
use entities::trace;

/// One trace, as far as metrics go. Equal facts are interchangeable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fact {
    /// When it started, microseconds.
    pub at: i64,
    /// Its model.
    pub model: Option<Arc<str>>,
    /// It ended in error.
    pub error: bool,
    /// Its newest feedback, as it is stored with the trace.
    pub feedback: Option<i16>,
    /// Milliseconds.
    pub latency_ms: Option<i64>,
    /// Pico-dollars; 0 when there is none.
    pub cost: i64,
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
        }
    }
}

/// How the label of a trace's newest feedback is stored.
pub const fn stored_label(label: FeedbackLabel) -> i16 {
    match label {
        FeedbackLabel::Neutral => 0,
        FeedbackLabel::Good => 1,
        FeedbackLabel::Bad => 2,
    }
}

/// Whether a stored label is the good one.
pub const fn is_good(stored: i16) -> bool {
    stored == stored_label(FeedbackLabel::Good)
}
