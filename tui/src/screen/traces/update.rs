//! The actions of the list of traces.

use api::Timestamp;

use crate::screen::traces::keys::LIST_SCOPE;
use crate::{
    input::{Input, InputKind},
    keymap::Action,
    net::{Destination, Effect, NetError, Response},
    shell::{Older, Pending, ScreenActions, ScreenRequests, Shell, notice::describe, trouble},
};

use super::{
    FILTER_LINE, detail,
    feed::{self, page_of},
    layout,
    state::{Traces, TracesRequest},
};

/// The term that selects failed traces.
const FAILED_FILTER: &str = "error:true";
/// Older rows are requested when the cursor is this many rows from the last loaded one.
const PREFETCH_ROWS: usize = 20;

impl ScreenActions for Traces {
    fn act(&mut self, shell: &mut Shell, action: Action) -> Vec<Effect> {
        if self.detail.is_some() {
            detail::update::act(self, shell, action)
        } else {
            act_on_list(self, shell, action)
        }
    }

    fn tick(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let mut effects = feed::tick(self, shell);
        effects.extend(detail::update::tick(self, shell));
        effects
    }

    fn project_changed(&mut self, shell: &mut Shell) -> Vec<Effect> {
        feed::reload(self, shell)
    }

    fn reconnected(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let mut effects = detail::update::back(self, shell);
        if self.detail.as_ref().is_some_and(|open| !open.loaded) {
            effects.extend(detail::update::reload(self, shell));
        }
        effects
    }
}

impl ScreenRequests for Traces {
    type Purpose = TracesRequest;

    fn pending(&self) -> &Pending<TracesRequest> {
        &self.pending
    }

    fn pending_mut(&mut self) -> &mut Pending<TracesRequest> {
        &mut self.pending
    }

    fn fill(
        &mut self,
        shell: &mut Shell,
        purpose: TracesRequest,
        sent: Timestamp,
        response: Response,
    ) -> Result<Vec<Effect>, NetError> {
        match purpose {
            TracesRequest::First
            | TracesRequest::Older(_)
            | TracesRequest::Newest
            | TracesRequest::Gap(_) => Ok(feed::fill(self, shell, purpose, sent, response.decoded()?)),
            _ => detail::update::fill(self, shell, purpose, response),
        }
    }

    fn fail(&mut self, shell: &mut Shell, purpose: TracesRequest, error: NetError) -> Vec<Effect> {
        match purpose {
            purpose if purpose.is_of_feed() => trouble::outage(shell, error),
            TracesRequest::Older(_) => {
                let effects = trouble::unauthorized(shell, &error);
                shell.report(describe(&error));
                effects
            }
            purpose => {
                let mut effects = trouble::unauthorized(shell, &error);
                effects.extend(detail::update::failed(self, shell, purpose, error));
                effects
            }
        }
    }
}

fn act_on_list(traces: &mut Traces, shell: &mut Shell, action: Action) -> Vec<Effect> {
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
    let call = page_of(&traces.query_at(shell, at), Some(cursor));
    vec![traces.pending.send(shell.ticket(), TracesRequest::Older(at), call)]
}

/// Restricts the filter to failed traces, or removes that term.
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

/// Removes the time bounds from the filter.
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
