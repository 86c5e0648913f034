//! Handling of refusals, failures and silence of the server.
//!
//! No failure stops the console for good. A temporary failure is retried after a growing, randomly spread
//! wait. After any other failure, the console asks again every [`PROBE_INTERVAL_MICROS`], because a role, a
//! plan or a proxy can change while the console is open.

use super::{
    Link, Outage, Shell,
    notice::{self, describe},
};
use crate::net::{Effect, FailureKind, NetError, RateLimit};

/// Microseconds between two probes of a server that refuses.
pub const PROBE_INTERVAL_MICROS: i64 = 30_000_000;
/// Maximum wait that a server's `Retry-After` can demand, in seconds.
const MAX_RETRY_AFTER_SECS: u64 = 120;

/// Returns whether a session was refused while an API key can still read.
pub fn is_session_refused(shell: &Shell, error: &NetError) -> bool {
    error.is_unauthorized() && shell.target.api_key && shell.has_session()
}

/// Handles a refused session while an API key can still read: actions that need a session are no longer
/// offered, and the identity is requested with the key.
pub fn session_refused(shell: &mut Shell, error: &NetError) -> Vec<Effect> {
    shell.report(format!("the session token was refused: {}", describe(error)));
    shell.refused_session = Some(error.clone());
    vec![shell.load_me()]
}

/// Starts an outage if a request was refused for its credential: the same credential reads the list, so its
/// requests are refused as well.
pub fn unauthorized(shell: &mut Shell, error: &NetError) -> Vec<Effect> {
    if error.is_unauthorized() && !shell.is_unauthorized() {
        return outage(shell, error.clone());
    }
    Vec::new()
}

/// Records that the list cannot be read, and when to retry.
pub fn outage(shell: &mut Shell, error: NetError) -> Vec<Effect> {
    let before = match &shell.link {
        Link::Down(outage) => Some(outage.clone()),
        _ => None,
    };
    let since = before.as_ref().map_or(shell.now, |before| before.since);
    let attempts = before.as_ref().map_or(0, |before| before.attempts).saturating_add(1);
    let wait = retry_delay(shell, &error, attempts);
    let next = shell.after(wait);
    if error.kind() == FailureKind::RateLimited {
        let limit = shell.limit.map_or(0, |limit| limit.limit);
        shell.limit = Some(RateLimit { limit, remaining: 0, reset: next });
    }
    // One notice for each kind of failure, not for each attempt.
    if before.is_none_or(|before| before.error.kind() != error.kind()) {
        let seconds = (wait + 999_999) / 1_000_000;
        let text = match notice::advice(shell, &error).first() {
            Some(advice) if !error.is_transient() => format!("{}. {advice}", describe(&error)),
            _ => format!("{}; retrying in {seconds}s", describe(&error)),
        };
        shell.report(text);
    }
    let refused = !error.is_transient();
    shell.link = Link::Down(Outage { since, attempts, error });
    shell.next_poll = next;
    if !refused {
        return Vec::new();
    }
    shell.stream = None;
    shell.next_stream = None;
    vec![Effect::CloseStream]
}

/// Returns the microseconds until the next attempt to read the list.
fn retry_delay(shell: &mut Shell, error: &NetError, attempts: u32) -> i64 {
    if !error.is_transient() {
        return PROBE_INTERVAL_MICROS;
    }
    let backoff = 1_000_000_i64.saturating_mul(1 << attempts.min(5)).min(PROBE_INTERVAL_MICROS);
    retry_after(error).max(jittered(shell, backoff))
}

/// Returns the microseconds until the next attempt of a request that is repeated in an interval, after this
/// many consecutive failures.
pub fn backoff(shell: &mut Shell, interval: i64, failures: u32, error: &NetError) -> i64 {
    if !error.is_transient() {
        return PROBE_INTERVAL_MICROS;
    }
    let backoff = jittered(shell, (interval << failures.min(4)).min(PROBE_INTERVAL_MICROS));
    backoff.max(retry_after(error))
}

/// Returns the wait that the server demands, in microseconds; 0 if none.
pub fn retry_after(error: &NetError) -> i64 {
    let seconds = error.retry_after.unwrap_or(0).min(MAX_RETRY_AFTER_SECS);
    i64::try_from(seconds).unwrap_or_default().saturating_mul(1_000_000)
}

/// Returns a random wait between half and the whole of this one, so that consoles that lost a server at the
/// same time do not return at the same time.
pub fn jittered(shell: &mut Shell, micros: i64) -> i64 {
    let half = micros / 2;
    half + shell.rng.i64(0..=half)
}

/// Returns whether a failure differs from the known one. Repeated requests are logged once for each
/// problem.
pub fn is_new(known: Option<&NetError>, error: &NetError) -> bool {
    known.is_none_or(|known| known.message != error.message)
}
