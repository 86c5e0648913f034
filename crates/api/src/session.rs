//! Sessions: traces of one conversation, grouped by `session_id`.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Summary of the traces of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Session {
    /// The application's identifier of the conversation.
    pub session_id: String,
    /// Number of traces.
    pub trace_count: i64,
    /// Number of traces that ended in error.
    pub error_count: i64,
    /// Start of the first trace.
    pub first_seen: Timestamp,
    /// Start of the last trace.
    pub last_seen: Timestamp,
    /// Cost in US dollars; null when no trace has a cost.
    pub cost: Option<f64>,
    /// Prompt and completion tokens over all traces.
    pub total_token_count: i64,
}

/// A page of sessions, by the start of their last trace, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionList {
    /// The sessions.
    pub sessions: Vec<Session>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
