//! Whether the records on the screen are current, and if not, since when and why.

use api::Timestamp;

use crate::{
    msg::{FailureKind, NetError},
    state::{EVALS, Link, METRICS, Purpose, State},
};

/// Microseconds without an answer to the first request after which the console says so.
const FIRST_ANSWER: i64 = 3_000_000;
/// The same for later requests: a busy server may take longer than a reachable one.
const LATER_ANSWER: i64 = 5_000_000;

/// Records that are not current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale<'a> {
    /// When they were last current; nothing if they never arrived.
    pub since: Option<Timestamp>,
    /// Why they are not.
    pub cause: Cause<'a>,
    /// When the next request is sent.
    pub next: Option<Timestamp>,
}

/// Why records are not current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause<'a> {
    /// A request failed.
    Failure(&'a NetError),
    /// A request was sent at this time and is not answered yet.
    Silence(Timestamp),
}

/// Why the records of the screen shown are not current. Nothing while they are, or while the first
/// answer may still come.
pub fn stale(state: &State) -> Option<Stale<'_>> {
    list(state).or_else(|| screen(state))
}

/// Whether new traces arrive by themselves.
pub fn is_live(state: &State) -> bool {
    matches!(state.link, Link::Streaming | Link::Polling) && list(state).is_none()
}

/// The state of the list of traces, which every screen depends on: its requests find out first
/// that the server is away or refuses the credential.
fn list(state: &State) -> Option<Stale<'_>> {
    let patience = match &state.link {
        Link::Down(outage) => {
            let cause = Cause::Failure(&outage.error);
            return Some(Stale { since: state.heard, cause, next: state.next_poll });
        }
        Link::Connecting => FIRST_ANSWER,
        Link::Polling => LATER_ANSWER,
        // The stream reports the end of a connection by itself.
        Link::Streaming => return None,
    };
    let sent = unanswered(state).filter(|sent| state.now.micros() - sent.micros() >= patience)?;
    Some(Stale { since: state.heard, cause: Cause::Silence(sent), next: None })
}

/// When the oldest open request for the list was sent.
fn unanswered(state: &State) -> Option<Timestamp> {
    let of_list =
        |it: &Purpose| matches!(it, Purpose::Lookup | Purpose::First | Purpose::Poll | Purpose::Fill(_));
    state.open.values().filter(|(it, _)| of_list(it)).map(|(_, sent)| *sent).min()
}

/// The state of the records that a screen asks for by itself.
fn screen(state: &State) -> Option<Stale<'_>> {
    let (since, error, next) = match state.screen {
        EVALS => (state.evals.heard, &state.evals.error, state.evals.next),
        METRICS => (state.metrics.at, &state.metrics.error, state.metrics.next),
        _ => return None,
    };
    error.as_ref().map(|error| Stale { since, cause: Cause::Failure(error), next })
}

impl Cause<'_> {
    /// The cause in a few words for the header.
    pub fn label(self, now: Timestamp) -> String {
        let error = match self {
            Self::Failure(error) => error,
            Self::Silence(sent) => {
                let seconds = (now.micros() - sent.micros()) / 1_000_000;
                return format!("no answer for {seconds}s");
            }
        };
        let status = error.status.unwrap_or_default();
        match error.kind() {
            FailureKind::Unreachable => "offline".to_owned(),
            FailureKind::RateLimited => "rate limited".to_owned(),
            FailureKind::Unauthorized => "401 unauthorized".to_owned(),
            FailureKind::Plan => "402 plan".to_owned(),
            FailureKind::Forbidden => "403 forbidden".to_owned(),
            FailureKind::NotFound => "404 not found".to_owned(),
            FailureKind::NotApi => "not the Loupe API".to_owned(),
            FailureKind::ServerFault | FailureKind::Rejected => format!("error {status}"),
        }
    }
}
