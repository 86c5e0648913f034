//! The smaller things that the state is made of.

use api::Timestamp;
use uuid::Uuid;

use crate::msg::NetError;

/// How the list learns of new traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// Nothing has been heard of the server yet.
    Connecting,
    /// Over the stream.
    Streaming,
    /// By asking every two seconds.
    Polling,
    /// Requests for the list fail. They are repeated until one succeeds.
    Down(Outage),
}

/// A series of failed requests for the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When the first of them failed.
    pub since: Timestamp,
    /// Number of failures since then.
    pub attempts: u32,
    /// The latest failure.
    pub error: NetError,
}

/// Where older rows begin on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Older {
    /// What the server calls that place.
    pub cursor: String,
    /// The instant that the times of the filter were reckoned from. The server takes a cursor only
    /// with the filter it was made for, and `from:-1h` is another one a second later.
    pub at: Timestamp,
}

impl Older {
    /// What the answer to a filter of this instant says of older rows.
    pub fn of(cursor: Option<String>, has_more: bool, at: Timestamp) -> Option<Self> {
        cursor.filter(|_| has_more).map(|cursor| Self { cursor, at })
    }
}

/// What an open request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Who the credential belongs to.
    Me,
    /// The same with a session token that the server refused earlier.
    RefusedSession,
    /// The current project, to notice that it was archived or restored.
    Project(Uuid),
    /// The projects, to find the one asked for.
    Lookup,
    /// The projects, to show them.
    Projects,
    /// The API keys.
    Keys,
    /// A change.
    Change,
    /// A list, to see whether a change happened whose answer was lost.
    Check,
    /// The first page of the list.
    First,
    /// An older page, with a filter whose times were reckoned from this instant.
    More(Timestamp),
    /// What is new.
    Poll,
    /// More of what is new, in the same way: the first page did not reach the known rows.
    Fill(Timestamp),
    /// The opened trace.
    Trace(Uuid),
    /// More spans of the opened trace.
    Spans(Uuid),
    /// The metrics shown.
    Metrics,
    /// The metrics of the time before them.
    Before,
    /// The metric of the project.
    RetryCap,
    /// The feedback of the time shown.
    Feedback,
    /// The first page of evaluations.
    Evals,
    /// An older page of them, with a filter whose times were reckoned from this instant.
    EvalsMore(Timestamp),
    /// The newest page of them again.
    EvalsPoll,
    /// Those in sight again, further down.
    EvalsSeen,
    /// The one that fills the screen, once it no longer fits the filter.
    EvalRead(Uuid),
    /// The evaluation that one in sight is compared with.
    Baseline(Uuid),
    /// The evaluations of the opened trace.
    TraceEvals(Uuid),
    /// The rules of the opened trace's project.
    TraceRules(Uuid),
    /// What one of them decided about the trace.
    TraceDecision(Uuid),
    /// The rules.
    Rules,
    /// How a rule's evaluations fared of late.
    RuleSample(Uuid),
    /// What a rule decided.
    Decisions(Uuid),
    /// The evaluators.
    Evaluators,
    /// Spans by meaning.
    Search,
    /// More of them.
    SearchMore,
}

/// A problem, as the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// When it happened.
    pub at: Timestamp,
    /// What was tried and what came of it.
    pub text: String,
}

/// A short notice in the status line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toast {
    /// The notice.
    pub text: String,
    /// It tells of a failure.
    pub bad: bool,
    /// When it goes.
    pub until: Timestamp,
}

/// What lies over the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overlay {
    /// The keys; the words narrow them down.
    Help {
        /// First visible line.
        top: usize,
        /// What to show only.
        words: String,
    },
    /// The log of problems.
    Problems {
        /// First visible line.
        top: usize,
    },
    /// The choice of a project.
    Projects {
        /// The project under the cursor; nothing stands for all of them.
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
    /// Everything that can be gone to or done, narrowed down by what is typed.
    Palette {
        /// The row under the cursor, among those that fit.
        selected: usize,
    },
}

/// A place to come back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The screen's digit.
    pub screen: u8,
    /// The opened trace.
    pub trace: Option<Uuid>,
}

/// The filter line.
#[derive(Debug, Default)]
pub struct FilterLine {
    /// The text in force.
    pub text: String,
    /// Texts used before, oldest first.
    pub history: Vec<String>,
    /// What is wrong with the text being edited, and at which character.
    pub error: Option<(usize, String)>,
    /// Whether Enter was pressed on an invalid text, after which every change is checked.
    pub refused: bool,
}
