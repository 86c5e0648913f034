//! Marking traces, and the list of those that are marked.

use crate::{
    bookmarks::Bookmark,
    keymap::Action,
    layout,
    msg::Effect,
    state::{Overlay, Place, SEARCH, State},
};

use super::{go, travel};

/// Marks the trace that is open or selected, or takes its mark away.
pub(super) fn toggle(state: &mut State) -> Vec<Effect> {
    let current = match &state.detail {
        Some(open) => Some((open.id, open.trace.as_ref().and_then(|trace| trace.name.clone()))),
        None if state.screen == SEARCH => {
            state.search.span().map(|span| (span.trace_id, Some(span.name.clone())))
        }
        None => state.list.current().map(|row| (row.id, row.name.clone())),
    };
    let Some((trace, name)) = current else { return Vec::new() };
    mark(state, trace, name)
}

fn mark(state: &mut State, trace: uuid::Uuid, name: Option<String>) -> Vec<Effect> {
    let bookmark = Bookmark { url: state.target.url.clone(), trace, name, at: state.now };
    let marked = state.bookmarks.toggle(bookmark);
    state.tell(if marked { "marked; M lists the marked traces" } else { "no longer marked" });
    vec![Effect::KeepBookmarks(state.bookmarks.clone())]
}

/// Keys of the list of bookmarks.
pub(super) fn act(state: &mut State, action: Action) -> Vec<Effect> {
    let page = usize::from(layout::frame(state.size).body.height).max(2) - 1;
    let rows: Vec<Bookmark> = state.bookmarks.of(&state.target.url).cloned().collect();
    let Some(Overlay::Bookmarks { selected }) = &mut state.overlay else { return Vec::new() };
    if let Some(to) = travel::to(action, *selected, rows.len().saturating_sub(1), page) {
        *selected = to;
        return Vec::new();
    }
    let current = rows.into_iter().nth(*selected);
    match (action, current) {
        (Action::Back | Action::Bookmarks, _) => state.overlay = None,
        (Action::Open, Some(it)) => {
            state.overlay = None;
            return go(state, Place { screen: 1, trace: Some(it.trace) });
        }
        (Action::Bookmark, Some(it)) => {
            let effects = mark(state, it.trace, it.name);
            let last = state.bookmarks.of(&state.target.url).count().saturating_sub(1);
            if let Some(Overlay::Bookmarks { selected }) = &mut state.overlay {
                *selected = (*selected).min(last);
            }
            return effects;
        }
        _ => {}
    }
    Vec::new()
}
