//! Outages of the server while a command follows it: delays between attempts, and their messages.

use std::time::Duration;

use api::client::Error;
use tokio::time::Instant;

use crate::env::now;

/// Maximum delay between two attempts to reach the server.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

/// The outage that a command waits for, if there is one.
#[derive(Debug, Default)]
pub struct OutageTracker {
    current: Option<Outage>,
}

/// A period in which the server cannot be reached.
#[derive(Debug)]
struct Outage {
    since: Instant,
    tries: u32,
}

/// Returns whether a failure is temporary, so that a later attempt can succeed.
pub fn is_temporary(error: &Error) -> bool {
    match error {
        Error::Unreachable { .. } => true,
        Error::Response(response) => response.status == 429 || response.status >= 500,
        _ => false,
    }
}

impl OutageTracker {
    /// Records a temporary failure. Returns the delay before the next attempt, with a message about it.
    pub fn record(&mut self, error: &Error) -> (Duration, String) {
        let outage = self.current.get_or_insert_with(|| Outage { since: Instant::now(), tries: 0 });
        let doubled = Duration::from_secs(1 << outage.tries.min(5)).min(MAX_RETRY_DELAY);
        outage.tries += 1;
        let wait = error.response().and_then(|response| response.retry_after).unwrap_or(doubled);
        let (time, seconds) = (now().format("%H:%M:%S"), wait.as_secs());
        let message = match error.status() {
            Some(_) => format!("{} at {time}, retrying in {seconds}s", error.cause()),
            None => format!("connection lost {time} ({}), retrying in {seconds}s", error.cause()),
        };
        (wait, message)
    }

    /// Ends the outage and returns its length in seconds; `None` if there was none.
    pub fn end(&mut self) -> Option<u64> {
        self.current.take().map(|outage| outage.since.elapsed().as_secs())
    }
}
