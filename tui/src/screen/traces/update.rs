//! What the keys of the list of traces do.

use crate::screen::traces::keys::LIST_SCOPE;
use crate::{
    input::{Input, InputKind},
    keymap::Action,
    net::{Destination, Effect},
    shell::{Older, Shell},
};

use super::{
    FILTER_LINE, feed, layout,
    state::{Traces, TracesRequest},
};

/// The term that selects failed traces.
const FAILED_FILTER: &str = "error:true";
/// Older rows are requested when the cursor is this many rows from the last loaded one.
const PREFETCH_ROWS: usize = 20;

pub fn act(traces: &mut Traces, shell: &mut Shell, action: Action) -> Vec<Effect> {
    let page = layout::list_rows(shell.size).max(2) - 1;
    let at = traces.list.selected();
    match action {
        Action::Up => traces.list.select(at.saturating_sub(1)),
        Action::Down => traces.list.select(at + 1),
        Action::PageUp => traces.list.select(at.saturating_sub(page)),
        Action::PageDown => traces.list.select(at + page),
        Action::Top => traces.list.select(0),
        Action::Bottom => traces.list.select(usize::MAX),
        Action::Follow => traces.list.resume(),
        Action::Pause if traces.list.paused => traces.list.resume(),
        Action::Pause => traces.list.pause(),
        Action::Open => {
            let Some(id) = traces.list.current().map(|row| row.id) else { return Vec::new() };
            return vec![Effect::Go(Destination::Trace { id, span: None, from: None })];
        }
        Action::EditFilter => shell.edit(Input::new(InputKind::Screen(FILTER_LINE), &traces.filter.text)),
        Action::FailuresOnly => return failures_only(traces, shell),
        Action::WidenTime => return widen(traces, shell),
        Action::Sort => {
            let sort = traces.list.sort.next();
            traces.list.set_sort(sort);
            shell.notify(format!("sorted: {} (loaded rows)", sort.title()));
        }
        Action::FindNext | Action::FindPrevious => match traces.list.find_from(action == Action::FindNext) {
            Some(hit) => traces.list.select(hit),
            None if traces.list.find().is_some() => shell.notify("not found in the loaded rows"),
            None => {
                let find = shell.key(LIST_SCOPE, Action::Find);
                shell.notify(format!("{find} finds"));
            }
        },
        Action::Refresh => return feed::retry(shell),
        Action::Back if traces.list.find().is_some() => traces.list.set_find(None),
        Action::Back if !traces.filter.text.is_empty() => {
            return feed::set_filter(traces, shell, String::new());
        }
        _ => {}
    }
    more(traces, shell)
}

/// Requests older rows when the cursor comes near the last loaded one.
fn more(traces: &mut Traces, shell: &mut Shell) -> Vec<Effect> {
    let near = traces.list.selected() + PREFETCH_ROWS >= traces.list.len();
    let Some(Older { cursor, at }) = traces.list.older.clone().filter(|_| near) else { return Vec::new() };
    if traces.pending.has(|purpose| matches!(purpose, TracesRequest::Older(_))) {
        return Vec::new();
    }
    let request = traces.pending.start(shell.ticket(), TracesRequest::Older(at));
    vec![Effect::LoadTraces { request, query: traces.query_at(shell, at), cursor: Some(cursor) }]
}

/// Narrows the filter to failed traces, or takes that term out of it.
fn failures_only(traces: &mut Traces, shell: &mut Shell) -> Vec<Effect> {
    let only = traces.failures_only(shell);
    let terms = traces.filter.text.split_whitespace().filter(|term| !term.starts_with("error:"));
    let mut terms: Vec<&str> = terms.collect();
    if !only {
        terms.push(FAILED_FILTER);
    }
    let text = terms.join(" ");
    if text == traces.filter.text {
        shell.notify("a saved filter selects the failed traces; / edits it");
        return Vec::new();
    }
    feed::set_filter(traces, shell, text)
}

/// Takes the time bounds out of the filter.
fn widen(traces: &mut Traces, shell: &mut Shell) -> Vec<Effect> {
    let terms = traces.filter.text.split_whitespace();
    let kept: Vec<&str> =
        terms.filter(|term| !term.starts_with("from:") && !term.starts_with("to:")).collect();
    let text = kept.join(" ");
    if text == traces.filter.text {
        shell.notify("the filter has no time bounds");
        return Vec::new();
    }
    feed::set_filter(traces, shell, text)
}
