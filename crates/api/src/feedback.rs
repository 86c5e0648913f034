//! What end users and reviewers say of a trace.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Timestamp, enums::words, trace::RawObject};

words! {
    /// The verdict.
    FeedbackLabel {
        /// It was right.
        Good = "good",
        /// It was wrong.
        Bad = "bad",
        /// Neither.
        Neutral = "neutral",
    }
}

/// Body of `POST /v1/feedback`. The trace is named by exactly one of its ids.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewFeedback {
    /// The trace by its id.
    #[serde(default)]
    pub trace_id: Option<Uuid>,
    /// The trace by the caller's own name for it; the newest if several have it.
    #[serde(default)]
    pub external_id: Option<String>,
    /// The trace by the 32 hexadecimal digits of its OpenTelemetry id.
    #[serde(default)]
    pub otel_trace_id: Option<String>,
    /// The verdict. Required. A text, so that an unknown word is a value not allowed and not a
    /// body that can't be read.
    #[cfg_attr(feature = "schema", schema(value_type = FeedbackLabel))]
    pub label: String,
    /// In words; at most 10,000 characters.
    #[serde(default)]
    pub comment: Option<String>,
    /// Who says so. The same user's next word from the same source takes the place of this one.
    /// At most 500 characters and 1,280 bytes; an empty text counts as absent.
    #[serde(default)]
    pub user_id: Option<String>,
    /// Where it was said, such as `thumbs` or `review`. Bounded as `user_id` is.
    #[serde(default)]
    pub source: Option<String>,
    /// The span that is meant, if not the whole trace.
    #[serde(default)]
    pub span_id: Option<Uuid>,
    /// Free data, an object of at most 16 KiB.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub metadata: Option<RawObject>,
}

/// One feedback.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Feedback {
    /// Its id.
    pub id: Uuid,
    /// The trace.
    pub trace_id: Uuid,
    /// The trace's project.
    pub project_id: Uuid,
    /// The span that is meant; null for the whole trace.
    pub span_id: Option<Uuid>,
    /// The verdict.
    pub label: FeedbackLabel,
    /// In words.
    pub comment: Option<String>,
    /// Who said so.
    pub user_id: Option<String>,
    /// Where it was said.
    pub source: Option<String>,
    /// Free data; an empty object when there is none.
    #[cfg_attr(feature = "schema", schema(value_type = Object, required = true))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject>,
    /// When it was first said.
    pub created_at: Timestamp,
    /// When it was last said.
    pub updated_at: Timestamp,
}

/// A page of feedback, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FeedbackList {
    /// The feedback.
    pub feedback: Vec<Feedback>,
    /// More rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
