//! What refusals, failures and silence of the server do.

use crate::{
    msg::{Effect, NetError, RateLimit},
    screens::notice::describe,
    state::{Link, Purpose, State},
};

use super::network::{after, load_me};

/// Longest wait between two attempts to reach the server, in seconds.
const LONGEST_WAIT: u64 = 30;

/// A refused session while a key goes on reading: what only people may do ends, and who it is
/// is asked with the key. Nothing happens on any other error.
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

pub(super) fn failed(state: &mut State, purpose: &Purpose, error: NetError) -> Vec<Effect> {
    let by_session = matches!(purpose, Purpose::Me | Purpose::Keys) && state.has_session();
    if by_session && error.unauthorized() && state.target.api_key {
        return refused_session(state, Some(&error));
    }
    if error.unauthorized() {
        state.complain(describe(&error));
        state.link = Link::Refused(error);
        state.next_poll = None;
        state.stream = None;
        return vec![Effect::CloseStream];
    }
    match purpose {
        // Who it is only decorates the header; the list's own request tells the trouble.
        Purpose::Me => {}
        Purpose::Trace(_) => {
            state.complain(describe(&error));
            if let Some(open) = &mut state.detail {
                open.error = Some(error);
            }
        }
        Purpose::Keys => {
            // A role that is too low is no trouble; the screen says so where the keys would be.
            if error.status != Some(403) {
                state.complain(describe(&error));
            }
            state.manage.keys.error = Some(error);
        }
        Purpose::Projects => {
            state.complain(describe(&error));
            state.manage.projects.error = Some(error);
        }
        Purpose::Metrics => {
            // It is asked again by itself; the log needs each trouble only once.
            if state.metrics.error.as_ref().is_none_or(|known| known.message != error.message) {
                state.complain(describe(&error));
            }
            let wait = error.retry_after.and_then(|seconds| i64::try_from(seconds).ok());
            let wait = wait.map_or(0, |seconds| seconds.saturating_mul(1_000_000));
            state.metrics.next = after(state, wait.max(state.metrics.stretch.refresh()));
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
            state.complain(describe(&error));
            let changed = error.status == Some(402);
            state.search.error = Some(error);
            // The plan is another than the one known; the panel names it.
            if changed {
                return vec![load_me(state)];
            }
        }
        Purpose::More(_) | Purpose::Spans(_) | Purpose::Change | Purpose::Check => {
            state.complain(describe(&error));
            if let (Purpose::Spans(_), Some(open)) = (purpose, &mut state.detail) {
                open.next_cursor = None;
            }
        }
        Purpose::Lookup | Purpose::First | Purpose::Poll | Purpose::Fill(_) if error.passing() => {
            away(state, &error)
        }
        Purpose::Lookup | Purpose::First | Purpose::Poll | Purpose::Fill(_) => {
            state.complain(describe(&error));
            state.refused_list = Some(error);
        }
    }
    Vec::new()
}

/// The server is away or busy: try again later, and later still.
fn away(state: &mut State, error: &NetError) {
    let (since, attempts) = match &state.link {
        Link::Away { since, attempts, .. } => (*since, attempts + 1),
        _ => (state.now, 1),
    };
    let wait = error.retry_after.unwrap_or_else(|| (1 << attempts.min(5)).min(LONGEST_WAIT)).max(1);
    let limited = error.status == Some(429);
    if limited {
        let limit = state.limit.map_or(0, |limit| limit.limit);
        let reset = after(state, i64::try_from(wait).unwrap_or(60).saturating_mul(1_000_000));
        state.limit = Some(RateLimit { limit, remaining: 0, reset });
    }
    // One notice for each time it goes away, and not one for each attempt.
    if attempts == 1 {
        state.complain(format!("{}; retrying in {wait}s", describe(error)));
    }
    state.link = Link::Away { since, attempts, status: error.status };
    state.next_poll = after(state, i64::try_from(wait).unwrap_or(60).saturating_mul(1_000_000));
}
