//! What refusals, failures and silence of the server do.
//!
//! No failure stops the console for good. A temporary failure is retried after a growing, randomly spread
//! wait. Any other failure is probed every [`PROBE_INTERVAL`], because a role, a plan or a proxy can change while
//! the console is open.

use crate::{
    msg::{Effect, FailureKind, NetError, RateLimit},
    screens::notice::{self, describe},
    state::{Link, Outage, Purpose, State},
};

use super::network::{after, load_me};

/// Microseconds between two probes of a server that refuses.
pub(super) const PROBE_INTERVAL: i64 = 30_000_000;
/// Limits the wait that a server's `Retry-After` can demand, in seconds.
const MAX_RETRY_AFTER: u64 = 120;

/// Handles a refused session while a key can still read: actions that need a person are no longer offered,
/// and the identity is requested with the key. Ignores any other error.
pub(super) fn refused_session(state: &mut State, error: Option<&NetError>) -> Vec<Effect> {
    let Some(error) = error.filter(|error| error.unauthorized() && state.target.api_key) else {
        return Vec::new();
    };
    if !state.has_session() {
        return Vec::new();
    }
    state.complain(format!("the session token was refused: {}", describe(error)));
    state.refused_session = Some(error.clone());
    vec![load_me(state)]
}

/// Handles a failed request.
pub(super) fn failed(state: &mut State, purpose: &Purpose, error: NetError) -> Vec<Effect> {
    let by_session = matches!(purpose, Purpose::Me | Purpose::Keys) && state.has_session();
    if by_session && error.unauthorized() && state.target.api_key {
        return refused_session(state, Some(&error));
    }
    let of_list = matches!(purpose, Purpose::Lookup | Purpose::First | Purpose::Poll | Purpose::Fill(_));
    if of_list {
        return outage(state, error);
    }
    let mut effects = Vec::new();
    // The same credential reads the list, so its requests are refused as well.
    if error.unauthorized() && *purpose != Purpose::RefusedSession && !state.is_unauthorized() {
        effects.extend(outage(state, error.clone()));
    }
    effects.extend(of_record(state, purpose, error));
    effects
}

/// Stores a failure for the screen whose request failed.
fn of_record(state: &mut State, purpose: &Purpose, error: NetError) -> Vec<Effect> {
    match purpose {
        // These requests only serve the header and are retried anyway.
        Purpose::Me | Purpose::RefusedSession | Purpose::Project(_) => {}
        Purpose::Trace(_) => {
            complain(state, &error);
            let next = after(state, PROBE_INTERVAL);
            if let Some(open) = &mut state.detail {
                open.error = Some(error);
                open.next = next;
            }
        }
        Purpose::Keys => {
            // A role that is too low is no trouble; the screen says so where the keys would be.
            if error.status != Some(403) && is_news(state.manage.keys.error.as_ref(), &error) {
                complain(state, &error);
            }
            state.manage.keys.error = Some(error);
        }
        Purpose::Projects => {
            if is_news(state.manage.projects.error.as_ref(), &error) {
                complain(state, &error);
            }
            state.manage.projects.error = Some(error);
        }
        Purpose::Metrics => {
            if is_news(state.metrics.error.as_ref(), &error) {
                complain(state, &error);
            }
            let wait = i64::try_from(retry_after(&error)).unwrap_or_default().saturating_mul(1_000_000);
            state.metrics.next = after(state, wait.max(state.metrics.stretch.refresh().min(PROBE_INTERVAL)));
            state.metrics.error = Some(error);
        }
        // They go with the metrics, whose own request tells the trouble.
        Purpose::Before => state.metrics.before = None,
        Purpose::RetryCap => state.metrics.retry_cap = None,
        Purpose::Feedback => state.metrics.verdicts = None,
        Purpose::Evals
        | Purpose::EvalsMore(_)
        | Purpose::EvalsPoll
        | Purpose::EvalsSeen
        | Purpose::EvalRead(_)
        | Purpose::Baseline(_)
        | Purpose::TraceEvals(_)
        | Purpose::TraceRules(_)
        | Purpose::TraceDecision(_)
        | Purpose::Rules
        | Purpose::RuleSample(_)
        | Purpose::Decisions(_)
        | Purpose::Evaluators => return super::evals::failed(state, purpose, error),
        Purpose::Search | Purpose::SearchMore => {
            complain(state, &error);
            let changed = error.status == Some(402);
            state.search.error = Some(error);
            // The plan is another than the one known; the panel names it.
            if changed {
                return vec![load_me(state)];
            }
        }
        Purpose::More(_) | Purpose::Spans(_) | Purpose::Change | Purpose::Check => {
            complain(state, &error);
            if let (Purpose::Spans(_), Some(open)) = (purpose, &mut state.detail) {
                open.next_cursor = None;
            }
        }
        Purpose::Lookup | Purpose::First | Purpose::Poll | Purpose::Fill(_) => {}
    }
    Vec::new()
}

/// Records that the list can't be read, and when to retry.
pub(super) fn outage(state: &mut State, error: NetError) -> Vec<Effect> {
    let before = match &state.link {
        Link::Down(outage) => Some(outage.clone()),
        _ => None,
    };
    let since = before.as_ref().map_or(state.now, |before| before.since);
    let attempts = before.as_ref().map_or(0, |before| before.attempts).saturating_add(1);
    let wait = delay(state, &error, attempts);
    let next = after(state, wait);
    if error.kind() == FailureKind::RateLimited {
        let limit = state.limit.map_or(0, |limit| limit.limit);
        state.limit = Some(RateLimit { limit, remaining: 0, reset: next });
    }
    // One notice for each kind of trouble, not for each attempt.
    if before.is_none_or(|before| before.error.kind() != error.kind()) {
        let seconds = (wait + 999_999) / 1_000_000;
        let text = match notice::advice(state, &error).first() {
            Some(advice) if !error.is_transient() => format!("{}. {advice}", describe(&error)),
            _ => format!("{}; retrying in {seconds}s", describe(&error)),
        };
        state.complain(text);
    }
    let refused = !error.is_transient();
    state.link = Link::Down(Outage { since, attempts, error });
    state.next_poll = next;
    if !refused {
        return Vec::new();
    }
    state.stream = None;
    state.next_stream = None;
    vec![Effect::CloseStream]
}

/// Returns the microseconds until the next attempt.
fn delay(state: &mut State, error: &NetError, attempts: u32) -> i64 {
    if !error.is_transient() {
        return PROBE_INTERVAL;
    }
    let asked = i64::try_from(retry_after(error)).unwrap_or_default().saturating_mul(1_000_000);
    let backoff = 1_000_000_i64.saturating_mul(1 << attempts.min(5)).min(PROBE_INTERVAL);
    asked.max(jittered(state, backoff))
}

/// Returns the wait that the server demands, in seconds; 0 if none.
pub(super) fn retry_after(error: &NetError) -> u64 {
    error.retry_after.unwrap_or(0).min(MAX_RETRY_AFTER)
}

/// Returns a random wait between half and the whole of this one, so that consoles that lost a server at the
/// same time do not return at the same time.
pub(super) fn jittered(state: &mut State, micros: i64) -> i64 {
    let half = micros / 2;
    half + state.rng.i64(0..=half)
}

/// Returns whether a failure differs from the known one. Repeated requests are logged once for each
/// trouble.
fn is_news(known: Option<&NetError>, error: &NetError) -> bool {
    known.is_none_or(|known| known.message != error.message)
}

fn complain(state: &mut State, error: &NetError) {
    state.complain(describe(error));
}
