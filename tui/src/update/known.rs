//! Records that are loaded somewhere: what the end of an id may stand for, and the trace at hand.

use uuid::Uuid;

use crate::state::{EVALS, State};

/// The rules that the end of an id may stand for.
pub fn rules(state: &State) -> Vec<Uuid> {
    let listed = state.evals.rules.list.items.iter().map(|rule| rule.id);
    listed.chain(state.evals.rows.iter().filter_map(|row| row.rule_id)).collect()
}

/// The traces that it may stand for: listed, judged, or opened.
pub fn traces(state: &State) -> Vec<Uuid> {
    let listed = (0..state.list.len()).filter_map(|at| state.list.get(at)).map(|row| row.id);
    let judged = state.evals.rows.iter().map(|row| row.trace_id);
    listed.chain(judged).chain(state.detail.as_ref().map(|open| open.id)).collect()
}

/// The spans that it may stand for: judged ones, and those of the opened trace.
pub fn spans(state: &State) -> Vec<Uuid> {
    let opened = state.detail.iter().flat_map(|open| {
        let judged = open.scores.rows().iter().filter_map(|row| row.span_id);
        open.spans.iter().map(|span| span.id).chain(judged)
    });
    state.evals.rows.iter().filter_map(|row| row.span_id).chain(opened).collect()
}

/// The trace that is at hand where the reader is.
pub fn at_hand(state: &State) -> Option<Uuid> {
    match (&state.detail, state.screen) {
        (Some(open), 1) => Some(open.id),
        (None, 1) => state.list.current().map(|row| row.id),
        (_, EVALS) => state.evals.current().map(|row| row.trace_id),
        _ => None,
    }
}
