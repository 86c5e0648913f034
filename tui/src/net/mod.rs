//! Messages to the console and the effects that it returns.
//!
//! `update` takes a [`Msg`] and returns [`Effect`]s; the driver performs them and sends their
//! results back as messages. A reply carries the number of its request, so that the reply to a
//! superseded request is recognised and dropped.

mod error;
mod files;
mod request;
pub mod server;

pub use error::{FailureKind, NetError};
pub use request::{List, Request, Response};

use api::{Timestamp, filter::Filter, project::Project, trace::Trace};
use crossterm::event::KeyEvent;
use uuid::Uuid;

use crate::bookmarks::Bookmarks;

/// Number of a request; later requests have larger ones.
pub type RequestId = u64;

/// The traces of a list or a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceQuery {
    /// The filter.
    pub filter: Filter,
    /// The project; none means all.
    pub project: Option<Uuid>,
}

/// A message to the console.
#[derive(Debug)]
pub enum Msg {
    /// A key was pressed.
    Key(KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// The terminal has this many columns and rows.
    Resize(u16, u16),
    /// The time changed.
    Tick(Timestamp),
    /// A request ended.
    Reply(RequestId, Result<Response, NetError>),
    /// Something arrived on a stream.
    Stream(RequestId, StreamEvent),
    /// The notice of a file that was written, or why it was not.
    Written(Result<String, String>),
    /// The rate limit of a response.
    Limit(RateLimit),
}

/// An event of a stream.
#[derive(Debug)]
pub enum StreamEvent {
    /// The server accepted the stream.
    Open,
    /// The server sent a keep-alive.
    Alive,
    /// Traces were stored or changed.
    Traces(Vec<Trace>),
    /// The stream ended, or was never opened.
    Closed(NetError),
}

/// Requests left in the current minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests that the window allows.
    pub limit: u64,
    /// Requests left in the window.
    pub remaining: u64,
    /// Time at which the next window begins, if the response contains it.
    pub reset: Option<Timestamp>,
}

impl RateLimit {
    /// Returns whether the plan has no limit. The server then sends a number that no client reaches.
    pub const fn is_unlimited(&self) -> bool {
        self.limit >= 1_000_000_000
    }

    /// Returns whether at most a fifth of the window is left and the window has not ended yet.
    pub fn is_low(&self, now: Timestamp) -> bool {
        self.limit > 0
            && self.remaining.saturating_mul(5) <= self.limit
            && self.reset.is_none_or(|at| at > now)
    }
}

/// A place that a screen leads to.
#[derive(Clone, Debug, PartialEq)]
pub enum Destination {
    /// The screen of this digit.
    Screen(u8),
    /// A trace.
    Trace {
        /// The trace.
        id: Uuid,
        /// The span to put the cursor on.
        span: Option<Uuid>,
        /// The screen that `esc` returns to; none keeps the one that the previous trace was opened from.
        from: Option<u8>,
    },
    /// The list of traces with a filter.
    Traces {
        /// The filter.
        filter: String,
    },
    /// The action on a trace that waits for a decision.
    Approval {
        /// The trace.
        trace: Uuid,
    },
    /// The remediation diff of an action.
    Remediation {
        /// The action.
        action: Uuid,
        /// The trace that `esc` returns to.
        trace: Uuid,
        /// The span to put the cursor on there.
        span: Uuid,
    },
    /// The list of traces of a project, or of all.
    Project(Option<Box<Project>>),
}

/// Something that the console does in response to a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send a request, whose response arrives as [`Msg::Reply`].
    Request(Request),
    /// Abandon the requests to this server and connect to the context of this number.
    Connect(usize),
    /// Open the live stream; one that is open is closed first.
    OpenStream {
        /// The request.
        request: RequestId,
        /// The query.
        query: TraceQuery,
    },
    /// Close the live stream.
    CloseStream,
    /// Go to another place.
    Go(Destination),
    /// Request the first page of the list of traces, or the newest one.
    RefreshList,
    /// Show the evaluations among which one was just created.
    ShowEvaluations,
    /// Repeat the requests that failed during an outage or a refusal of the server.
    Reconnected {
        /// Whether the server refused.
        refused: bool,
    },
    /// Put text on the clipboard.
    Copy(String),
    /// Write text to a file that does not exist yet.
    Write {
        /// The path.
        path: String,
        /// The content.
        text: String,
        /// The notice to show when it is written.
        notice: String,
    },
    /// Save the marked traces.
    KeepBookmarks(Bookmarks),
    /// Clear the screen and draw it again.
    Redraw,
    /// Stop until the shell resumes the process.
    Suspend,
    /// End the console.
    Quit,
}
