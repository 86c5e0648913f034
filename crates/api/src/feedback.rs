//! Feedback: labels and comments of end users and reviewers on traces.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Timestamp, enums::words, trace::RawObject};

words! {
    /// The label of a feedback.
    FeedbackLabel {
        /// The output was good.
        Good = "good",
        /// The output was bad.
        Bad = "bad",
        /// Neither good nor bad.
        Neutral = "neutral",
    }
}

/// Body of `POST /v1/feedback`. Exactly one of the ID fields names the trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewFeedback {
    /// The trace by its ID.
    #[serde(default)]
    pub trace_id: Option<Uuid>,
    /// The trace by the sender's external ID; the newest one if several have it.
    #[serde(default)]
    pub external_id: Option<String>,
    /// The trace by the 32 hexadecimal digits of its OpenTelemetry trace ID.
    #[serde(default)]
    pub otel_trace_id: Option<String>,
    /// The label. Required. A string, so that an unknown word is a validation error (422) and not a
    /// malformed body (400).
    #[cfg_attr(feature = "schema", schema(value_type = FeedbackLabel))]
    pub label: String,
    /// A comment of at most 10,000 characters.
    #[serde(default)]
    pub comment: Option<String>,
    /// The end user who gave it. Later feedback of the same user and source replaces it. At most 500
    /// characters and 1,280 bytes; an empty string counts as absent.
    #[serde(default)]
    pub user_id: Option<String>,
    /// Where the feedback was given, such as `thumbs` or `review`. Same bounds as `user_id`.
    #[serde(default)]
    pub source: Option<String>,
    /// The span that it concerns; default: the whole trace.
    #[serde(default)]
    pub span_id: Option<Uuid>,
    /// Additional data, an object of at most 16 KiB.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub metadata: Option<RawObject>,
}

/// A label of a trace given by a person.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Feedback {
    /// Identifies the feedback.
    pub id: Uuid,
    /// The trace.
    pub trace_id: Uuid,
    /// The trace's project.
    pub project_id: Uuid,
    /// The span that it concerns; null for the whole trace.
    pub span_id: Option<Uuid>,
    /// The label.
    pub label: FeedbackLabel,
    /// The comment.
    pub comment: Option<String>,
    /// The end user who gave it.
    pub user_id: Option<String>,
    /// Where the feedback was given.
    pub source: Option<String>,
    /// Additional data; an empty object when there is none.
    #[cfg_attr(feature = "schema", schema(value_type = Object, required = true))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject>,
    /// Time at which it was first given.
    pub created_at: Timestamp,
    /// Time at which it was last given.
    pub updated_at: Timestamp,
}

/// A page of feedback, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FeedbackList {
    /// The feedback.
    pub feedback: Vec<Feedback>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
