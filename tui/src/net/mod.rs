//! Messages to the console and the effects that it returns.
//!
//! `update` takes a [`Msg`] and answers [`Effect`]s; the driver performs them and feeds the
//! results back as messages. A reply carries the number of its request, so that one that was
//! overtaken is recognised and dropped.

mod fetch;
mod files;
mod lists;
pub mod requests;

pub use fetch::{Fetch, Fetched};

use api::{
    Timestamp,
    client::calls::{FeedbackFilter, MetricQuery},
    eval::EvaluationFilter,
    eval::{Evaluation, EvaluationList},
    eval_rule::{EvalRule, RuleDecisionList, RuleTest},
    evaluator::Evaluator,
    feedback::FeedbackList,
    filter::Filter,
    key::ApiKey,
    metrics::Metrics,
    project::Project,
    tenant::Me,
    trace::{SpanList, Trace, TraceList},
};
use crossterm::event::KeyEvent;
use uuid::Uuid;

use crate::{bookmarks::Bookmarks, change::Change};

/// Number of a request; later requests have larger ones.
pub type RequestId = u64;

/// The traces of a list or a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceQuery {
    /// The filter.
    pub filter: Filter,
    /// Only this project's.
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
    /// The clock moved on.
    Tick(Timestamp),
    /// A request came to its end.
    Reply(RequestId, Result<Reply, NetError>),
    /// Something arrived on a stream.
    Stream(RequestId, StreamEvent),
    /// A file was written, or why it was not; a sentence either way.
    Written(Result<String, String>),
    /// The server told how many requests are left.
    Limit(RateLimit),
}

/// The response to a request.
#[derive(Debug)]
pub enum Reply {
    /// The identity of the credential.
    Me(Box<Me>),
    /// The tenant's projects, archived ones too.
    Projects(Vec<Project>),
    /// One project.
    Project(Box<Project>),
    /// The tenant's API keys.
    Keys(Vec<ApiKey>),
    /// The API key that was made, with its secret.
    Key(Box<ApiKey>),
    /// The change succeeded and returned no record.
    Done,
    /// A page of traces.
    Traces(TraceList),
    /// One trace with its spans.
    Trace(Box<Trace>),
    /// More spans of a trace.
    Spans(SpanList),
    /// Metrics of traces.
    Metrics(Box<Metrics>),
    /// A metric of a project.
    ProjectMetric(i64),
    /// A page of feedback.
    Feedback(FeedbackList),
    /// A page of evaluations.
    Evaluations(EvaluationList),
    /// One evaluation, requested or just created.
    Evaluation(Box<Evaluation>),
    /// The rules.
    Rules(Vec<EvalRule>),
    /// The rule that was made.
    RuleMade(Uuid),
    /// The result of a rule test.
    Tested(Box<RuleTest>),
    /// The decisions of a rule.
    Decisions(RuleDecisionList),
    /// The evaluators.
    Evaluators(Vec<Evaluator>),
    /// The response to a [`Fetch`].
    Fetched(Fetched),
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
    /// When the next window begins, if the server said so.
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

/// The error of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetError {
    /// The HTTP status; nothing when no answer came.
    pub status: Option<u16>,
    /// The machine-readable code, where the server sent one.
    pub code: Option<String>,
    /// The message.
    pub message: String,
    /// Identifier of the request, for the server's log.
    pub request_id: Option<String>,
    /// The plan that it takes, when that is why.
    pub required_plan: Option<String>,
    /// Seconds to wait before the next request.
    pub retry_after: Option<u64>,
    /// The body is not the API's JSON: it comes from a proxy or another server.
    pub not_api: bool,
}

/// The kinds of failed requests that the console describes differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// No response.
    Unreachable,
    /// 429.
    RateLimited,
    /// 5xx and other statuses that a retry may clear.
    ServerFault,
    /// 401.
    Unauthorized,
    /// 402.
    Plan,
    /// 403.
    Forbidden,
    /// 404.
    NotFound,
    /// The response is not the API's.
    NotApi,
    /// Any other error.
    Rejected,
}

impl NetError {
    /// Returns the kind of this failure.
    pub const fn kind(&self) -> FailureKind {
        match self.status {
            None => FailureKind::Unreachable,
            Some(429) => FailureKind::RateLimited,
            Some(408 | 425 | 500..=599) => FailureKind::ServerFault,
            Some(_) if self.not_api => FailureKind::NotApi,
            Some(401) => FailureKind::Unauthorized,
            Some(402) => FailureKind::Plan,
            Some(403) => FailureKind::Forbidden,
            Some(404) => FailureKind::NotFound,
            Some(_) => FailureKind::Rejected,
        }
    }

    /// Returns whether the server refused the credential.
    pub fn is_unauthorized(&self) -> bool {
        self.kind() == FailureKind::Unauthorized
    }

    /// Returns whether a retry may succeed soon.
    pub fn is_transient(&self) -> bool {
        matches!(self.kind(), FailureKind::Unreachable | FailureKind::RateLimited | FailureKind::ServerFault)
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
    /// The list of traces of a project, or of all.
    Project(Option<Box<Project>>),
}

/// Something that the console does in response to a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Request the identity of the credential.
    LoadMe {
        /// The request.
        request: RequestId,
        /// Whether the session goes before the API key.
        session: bool,
    },
    /// Request the projects, archived ones too.
    LoadProjects(RequestId),
    /// Request one project.
    LoadProject {
        /// The id of the request.
        request: RequestId,
        /// The project.
        id: Uuid,
    },
    /// Request the API keys.
    LoadKeys(RequestId),
    /// Send a change. The request is never repeated.
    Send {
        /// The request.
        request: RequestId,
        /// The change.
        change: Change,
        /// Whether the session goes before the API key.
        session: bool,
    },
    /// Abandon the requests to this server and connect to the context of this number.
    Connect(usize),
    /// Request a page of traces.
    LoadTraces {
        /// The request.
        request: RequestId,
        /// The query.
        query: TraceQuery,
        /// The cursor of the page; none for the first one.
        cursor: Option<String>,
    },
    /// Open the live stream; one that is open is closed first.
    OpenStream {
        /// The request.
        request: RequestId,
        /// The query.
        query: TraceQuery,
    },
    /// Close the live stream.
    CloseStream,
    /// Request one trace.
    LoadTrace {
        /// The request.
        request: RequestId,
        /// The id.
        id: Uuid,
    },
    /// Request more spans of a trace.
    LoadSpans {
        /// The request.
        request: RequestId,
        /// The id of the trace.
        id: Uuid,
        /// The cursor of the page; none for the first one.
        cursor: String,
    },
    /// Request metrics of traces.
    LoadMetrics {
        /// The request.
        request: RequestId,
        /// The traces, the window and the interval.
        query: MetricQuery,
    },
    /// Request `retry_cap_hit` of a project over 7 days.
    LoadRetryCap {
        /// The request.
        request: RequestId,
        /// The id of the project.
        project: Uuid,
    },
    /// Request the newest feedback.
    LoadFeedback {
        /// The request.
        request: RequestId,
        /// The filter.
        filter: FeedbackFilter,
    },
    /// Request a page of evaluations.
    LoadEvaluations {
        /// The request.
        request: RequestId,
        /// The filter.
        filter: EvaluationFilter,
        /// Most rows of the page.
        limit: u32,
        /// The cursor of the page; none for the first one.
        cursor: Option<String>,
    },
    /// Request one evaluation.
    LoadEvaluation {
        /// The request.
        request: RequestId,
        /// The id.
        id: Uuid,
    },
    /// Request the rules.
    LoadRules {
        /// The request.
        request: RequestId,
        /// The project; none means all of them.
        project: Option<Uuid>,
    },
    /// Request the decisions of a rule.
    LoadDecisions {
        /// The request.
        request: RequestId,
        /// The id of the rule.
        rule: Uuid,
        /// The trace; none means the newest decisions.
        trace: Option<Uuid>,
    },
    /// Request the evaluators, including the tenant's own.
    LoadEvaluators(RequestId),
    /// Send a request that a screen defines itself.
    Fetch(Fetch),
    /// Go to another place.
    Go(Destination),
    /// Request the first page of the list of traces, or the newest one.
    RefreshList,
    /// Repeat what failed while the server did not answer, or refused.
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
