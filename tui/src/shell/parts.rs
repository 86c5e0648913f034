//! The smaller types of the shared state.

use api::Timestamp;
use uuid::Uuid;

use crate::net::NetError;

/// The way in which new traces arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// The server has not responded yet.
    Connecting,
    /// New traces arrive over the stream.
    Streaming,
    /// New traces arrive by polling every two seconds.
    Polling,
    /// Requests for the list fail. They are repeated until one succeeds.
    Down(Outage),
}

/// A series of failed requests for the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Time at which the first of them failed.
    pub since: Timestamp,
    /// Number of failures since then.
    pub attempts: u32,
    /// The latest failure.
    pub error: NetError,
}

/// The cursor of the older rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Older {
    /// The cursor.
    pub cursor: String,
    /// The instant from which the relative times of the filter count. The server accepts a cursor only
    /// with the filter that it was created for, and `from:-1h` is another filter a second later.
    pub at: Timestamp,
}

impl Older {
    /// Returns where older rows begin, as a response to a filter of this instant reports it.
    pub fn of(cursor: Option<String>, has_more: bool, at: Timestamp) -> Option<Self> {
        cursor.filter(|_| has_more).map(|cursor| Self { cursor, at })
    }
}

/// The purpose of an open request that belongs to no screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The identity of the credential.
    Me,
    /// The identity of a session token that the server refused earlier.
    RefusedSession,
    /// The current project, to notice that it was archived or restored.
    Project(Uuid),
    /// The projects, to find the requested one.
    Lookup,
    /// The projects, to show them.
    Projects,
    /// The evaluators.
    Evaluators,
    /// The change of a dialog.
    Change,
    /// A list that shows whether a change with a lost response happened.
    Check,
}

/// A problem, as the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Time at which it happened.
    pub at: Timestamp,
    /// The description of the attempt and its error.
    pub text: String,
}

/// A short notice in the status line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toast {
    /// The notice.
    pub text: String,
    /// Whether the notice reports a failure.
    pub is_failure: bool,
    /// Time at which the notice disappears.
    pub until: Timestamp,
}

/// An overlay over the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overlay {
    /// The help: the key bindings, filtered by the words typed.
    Help {
        /// First visible line.
        top: usize,
        /// The words that filter the bindings.
        words: String,
    },
    /// The log of problems.
    Problems {
        /// First visible line.
        top: usize,
    },
    /// The choice of a project.
    Projects {
        /// The project under the cursor; none means all of them.
        selected: Option<Uuid>,
    },
    /// The choice of a context.
    Contexts {
        /// The row under the cursor.
        selected: usize,
    },
    /// The marked traces.
    Bookmarks {
        /// The row under the cursor.
        selected: usize,
    },
    /// The palette: actions and places, filtered by the words typed.
    Palette {
        /// The row under the cursor, among the matches.
        selected: usize,
    },
}

/// A place to come back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The screen's digit.
    pub screen: u8,
    /// The opened trace.
    pub trace: Option<Uuid>,
}
