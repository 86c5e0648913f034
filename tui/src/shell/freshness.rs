//! Determines whether the records on the screen are current, and if not, since when and why.

use api::Timestamp;

use super::{Link, Shell};
use crate::net::{FailureKind, NetError};

/// How long the first request may take until the console reports it, in microseconds.
const MAX_FIRST_ANSWER_MICROS: i64 = 3_000_000;
/// How long later requests may take, in microseconds: a busy server may be slower.
const MAX_LATER_ANSWER_MICROS: i64 = 5_000_000;

/// Facts about records that are not current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale<'a> {
    /// Time at which they were last current; none if they never arrived.
    pub since: Option<Timestamp>,
    /// Why the records are not current.
    pub cause: Cause<'a>,
    /// The time of the next request.
    pub next: Option<Timestamp>,
}

/// The reason why records are not current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause<'a> {
    /// A request failed.
    Failure(&'a NetError),
    /// A request was sent at this time and has no response yet.
    Silence(Timestamp),
}

/// Returns whether new traces arrive without an action of the user.
pub fn is_live(shell: &Shell) -> bool {
    matches!(shell.link, Link::Streaming | Link::Polling) && stale(shell).is_none()
}

/// Returns the state of the trace list, which represents all screens: its requests are the first to detect
/// an unreachable server or a refused credential.
pub fn stale(shell: &Shell) -> Option<Stale<'_>> {
    let patience = match &shell.link {
        Link::Down(outage) => {
            let cause = Cause::Failure(&outage.error);
            return Some(Stale { since: shell.heard, cause, next: shell.next_poll });
        }
        Link::Connecting => MAX_FIRST_ANSWER_MICROS,
        Link::Polling => MAX_LATER_ANSWER_MICROS,
        // The clock replaces a stream that sends no heartbeats by requests.
        Link::Streaming => return None,
    };
    let sent = shell.unanswered.filter(|sent| shell.now.micros() - sent.micros() >= patience)?;
    Some(Stale { since: shell.heard, cause: Cause::Silence(sent), next: None })
}

impl Cause<'_> {
    /// Describes the cause in a few words for the header.
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
