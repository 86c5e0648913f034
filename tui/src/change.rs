//! A change that the console makes on the server: its requests, and the texts of its dialog.
//!
//! Each screen defines its own changes. A change is sent once. If its response is lost, a fresh list shows whether it
//! happened; it is never sent again.

use std::{any::Any, fmt::Debug, sync::Arc};

use api::{Timestamp, client::Auth};
use present::Tone;
use uuid::Uuid;

use crate::net::{Request, RequestId};

/// A change on the server. A screen implements it for the changes that it offers.
pub trait Change: Any + Debug + Send + Sync {
    /// Returns the title of the dialog.
    fn title(&self) -> &'static str;

    /// Returns the label of the button.
    fn verb(&self) -> &'static str;

    /// Returns the consequences, in one or two sentences, for a confirmation.
    fn consequences(&self) -> &'static str {
        ""
    }

    /// Returns what changes, a line each, for a confirmation.
    fn excerpt(&self) -> &[ExcerptLine] {
        &[]
    }

    /// Returns the change with a note that the user wrote in the confirmation; none if the change takes no note.
    fn with_note(&self, _note: &str) -> Option<Arc<dyn Change>> {
        None
    }

    /// Returns the name of the record that changes.
    fn name(&self) -> &str;

    /// Returns the id of the record that changes, if it exists already.
    fn id(&self) -> Option<Uuid> {
        None
    }

    /// Returns the notice after success.
    fn done(&self) -> String;

    /// Returns the request that makes the change. `auth` is the session token if there is one, else the API key.
    fn request(&self, id: RequestId, auth: Auth) -> Request;

    /// Returns the request for a fresh list that shows whether the change happened; none if the change stores nothing.
    fn check(&self, id: RequestId, context: CheckContext) -> Option<Request>;
}

/// A line about what a change changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExcerptLine {
    /// The tone.
    pub tone: Tone,
    /// The mark of a line of a compared text. Each row of the wrapped line begins with it, so that no row passes for
    /// another line.
    pub mark: &'static str,
    /// The text.
    pub text: String,
}

impl ExcerptLine {
    /// Returns a sentence or a field.
    pub fn sentence(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, mark: "", text: text.into() }
    }

    /// Returns a line of a text that is added.
    pub fn added(text: impl Into<String>) -> Self {
        Self { tone: Tone::Good, mark: "+", text: text.into() }
    }

    /// Returns a line of a text that is removed.
    pub fn removed(text: impl Into<String>) -> Self {
        Self { tone: Tone::Bad, mark: "-", text: text.into() }
    }

    /// Returns a line of a text that is quoted.
    pub fn quoted(text: impl Into<String>) -> Self {
        Self { tone: Tone::Plain, mark: " ", text: text.into() }
    }
}

/// What limits the list that shows whether a change happened.
#[derive(Clone, Copy, Debug)]
pub struct CheckContext {
    /// The project shown; none means all of them.
    pub project: Option<Uuid>,
    /// An instant before the change was sent, by the clock of the server too.
    pub since: Timestamp,
}

/// The state of the console when a change was sent.
#[derive(Clone, Copy, Debug)]
pub struct SentState<'a> {
    /// The ids of the records that were loaded.
    pub records: &'a [Uuid],
    /// The time by this machine's clock.
    pub at: Timestamp,
}

/// The outcome of a change whose response was lost, as a fresh list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// The change happened.
    Made,
    /// The change did not happen.
    NotMade,
    /// The user has to act or to look; the sentence says why.
    NeedsAttention(String),
}

impl ChangeOutcome {
    /// Returns the outcome of a change that a list shows completely.
    pub const fn of(happened: bool) -> Self {
        if happened { Self::Made } else { Self::NotMade }
    }
}

/// The changes of a screen that makes none.
#[derive(Clone, Copy, Debug)]
pub enum NoChange {}

impl Change for NoChange {
    fn title(&self) -> &'static str {
        match *self {}
    }

    fn verb(&self) -> &'static str {
        match *self {}
    }

    fn name(&self) -> &str {
        match *self {}
    }

    fn done(&self) -> String {
        match *self {}
    }

    fn request(&self, _id: RequestId, _auth: Auth) -> Request {
        match *self {}
    }

    fn check(&self, _id: RequestId, _context: CheckContext) -> Option<Request> {
        match *self {}
    }
}
