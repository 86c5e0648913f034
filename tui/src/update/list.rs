//! Keys of the list of traces.

use crate::{
    input::{Input, Purpose as Line},
    keymap::{Action, Scope},
    layout,
    msg::Effect,
    state::{Older, Place, Purpose, State},
};

use super::{go, network, typing};

/// The term that selects failed traces.
const FAILED_FILTER: &str = "error:true";
/// Rows before the end of the loaded ones at which older ones are asked for.
const AHEAD: usize = 20;

pub(super) fn act(state: &mut State, action: Action) -> Vec<Effect> {
    let page = layout::list_rows(state.size).max(2) - 1;
    let at = state.list.selected();
    match action {
        Action::Up => state.list.select(at.saturating_sub(1)),
        Action::Down => state.list.select(at + 1),
        Action::PageUp => state.list.select(at.saturating_sub(page)),
        Action::PageDown => state.list.select(at + page),
        Action::Top => state.list.select(0),
        Action::Bottom => state.list.select(usize::MAX),
        Action::Follow => state.list.resume(),
        Action::Pause if state.list.paused => state.list.resume(),
        Action::Pause => state.list.pause(),
        Action::Open => {
            let Some(id) = state.list.current().map(|row| row.id) else { return Vec::new() };
            return go(state, Place { screen: 1, trace: Some(id) });
        }
        Action::EditFilter => typing::begin(state, Input::new(Line::Filter, &state.filter.text)),
        Action::FailuresOnly => return failures_only(state),
        Action::WidenTime => return widen(state),
        Action::Sort => {
            let sort = state.list.sort.next();
            state.list.set_sort(sort);
            state.tell(format!("sorted: {} (loaded rows)", sort.title()));
        }
        Action::FindNext | Action::FindPrevious => match state.list.find_from(action == Action::FindNext) {
            Some(hit) => state.list.select(hit),
            None if state.list.find().is_some() => state.tell("not found in the loaded rows"),
            None => {
                let find = state.key(Scope::List, Action::Find);
                state.tell(format!("{find} finds"));
            }
        },
        Action::Refresh => return network::retry(state),
        Action::Back if state.list.find().is_some() => state.list.set_find(None),
        Action::Back if !state.filter.text.is_empty() => return network::set_filter(state, String::new()),
        _ => {}
    }
    more(state)
}

/// Asks for older rows when the cursor comes near the last loaded one.
fn more(state: &mut State) -> Vec<Effect> {
    let near = state.list.selected() + AHEAD >= state.list.len();
    let Some(Older { cursor, at }) = state.list.older.clone().filter(|_| near) else { return Vec::new() };
    if state.awaits(|purpose| matches!(purpose, Purpose::More(_))) {
        return Vec::new();
    }
    let request = state.request(Purpose::More(at));
    vec![Effect::LoadTraces { request, query: state.query_at(at), cursor: Some(cursor) }]
}

/// Narrows the filter to failed traces, or takes that term out of it.
fn failures_only(state: &mut State) -> Vec<Effect> {
    let only = state.failures_only();
    let terms = state.filter.text.split_whitespace().filter(|term| !term.starts_with("error:"));
    let mut terms: Vec<&str> = terms.collect();
    if !only {
        terms.push(FAILED_FILTER);
    }
    let text = terms.join(" ");
    if text == state.filter.text {
        state.tell("a saved filter selects the failed traces; / edits it");
        return Vec::new();
    }
    network::set_filter(state, text)
}

/// Takes the time bounds out of the filter.
fn widen(state: &mut State) -> Vec<Effect> {
    let terms = state.filter.text.split_whitespace();
    let kept: Vec<&str> =
        terms.filter(|term| !term.starts_with("from:") && !term.starts_with("to:")).collect();
    let text = kept.join(" ");
    if text == state.filter.text {
        state.tell("the filter has no time bounds");
        return Vec::new();
    }
    network::set_filter(state, text)
}
