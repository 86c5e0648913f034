//! Keys of Search, and what its line asks the server.

use api::{client::calls::TextSearch, filter::when::Clock, search::NearSpan};

use crate::{
    ids::Unknown,
    input::{Input, Purpose as Line},
    keymap::Action,
    layout,
    msg::Effect,
    search::{self, Near, Wanted},
    state::{Place, Purpose, SEARCH, State},
};

use super::{go, travel, typing};

/// Rows before the end of the loaded ones at which further ones are asked for.
const AHEAD: usize = 10;

/// Going to the screen: the projects are needed to tell one by its name.
pub(super) fn enter(state: &mut State) -> Vec<Effect> {
    if state.manage.projects.loaded {
        return Vec::new();
    }
    vec![Effect::LoadProjects(state.request(Purpose::Projects))]
}

pub(super) fn act(state: &mut State, action: Action) -> Vec<Effect> {
    let page = layout::search(state.size).rows().max(2) - 1;
    let last = state.search.rows.len().saturating_sub(1);
    if let Some(to) = travel::to(action, state.search.selected, last, page) {
        state.search.selected = to;
        return more(state);
    }
    match action {
        Action::EditSearch => {
            typing::begin(state, Input::new(Line::Search, &state.search.text));
            Vec::new()
        }
        Action::Open => open(state),
        Action::Refresh => match state.search.wanted.clone() {
            Some(wanted) => begin(state, state.search.text.clone(), wanted),
            None => Vec::new(),
        },
        Action::Neighbours => neighbours(state),
        Action::Back => go(state, Place { screen: 1, trace: None }),
        _ => Vec::new(),
    }
}

/// Looks for what a line says.
///
/// # Errors
/// The character that is wrong, from 0, and what is wrong with it.
pub(super) fn run(state: &mut State, text: &str) -> Result<Vec<Effect>, (usize, String)> {
    let line = search::Line::parse(text, &Clock::of(&state.zone.of(state.now)))?;
    let project_id = match &line.project {
        None => state.project.as_ref().map(|project| project.id),
        Some((_, name)) if name == "*" => None,
        Some((at, name)) => {
            let found = state.manage.told(name).map_err(|unknown| match unknown {
                Unknown::Nothing => format!("no project `{name}`"),
                Unknown::Several => format!("`{name}` is the end of more than one project's id"),
            });
            Some(found.map_err(|why| (*at, why))?.id)
        }
    };
    let search::Line { words: q, kind, model, from, to, .. } = line;
    let wanted = Wanted { text: TextSearch { q, project_id, from, to, kind, model }, near: None };
    Ok(begin(state, text.to_owned(), wanted))
}

/// Looks for spans like the selected one. That takes no provider: its vector is there already.
fn neighbours(state: &mut State) -> Vec<Effect> {
    let Some(span) = state.search.span() else {
        state.tell("no span is selected");
        return Vec::new();
    };
    let near = Near { span: NearSpan { trace_id: span.trace_id, span_id: span.id }, name: span.name.clone() };
    let project_id = state.search.wanted.as_ref().and_then(|wanted| wanted.text.project_id);
    let text = TextSearch { project_id, ..TextSearch::default() };
    begin(state, state.search.text.clone(), Wanted { text, near: Some(near) })
}

fn begin(state: &mut State, text: String, wanted: Wanted) -> Vec<Effect> {
    state.search.begin(text, wanted.clone());
    state.open.retain(|_, (it, _)| *it != Purpose::SearchMore);
    let request = state.request(Purpose::Search);
    vec![Effect::Search { request, wanted, cursor: None }]
}

/// Another project, or all of them, was chosen: what was found may be of others.
pub(super) fn reload(state: &mut State) -> Vec<Effect> {
    if state.search.wanted.is_none() || state.screen != SEARCH {
        return Vec::new();
    }
    let text = state.search.text.clone();
    run(state, &text).unwrap_or_default()
}

/// Asks for further rows when the cursor comes near the last loaded one.
fn more(state: &mut State) -> Vec<Effect> {
    let near = state.search.selected + AHEAD >= state.search.rows.len();
    let cursor = state.search.next_cursor.clone().filter(|_| near);
    let (Some(cursor), Some(wanted)) = (cursor, state.search.wanted.clone()) else { return Vec::new() };
    if state.awaits(|purpose| *purpose == Purpose::SearchMore) {
        return Vec::new();
    }
    let request = state.request(Purpose::SearchMore);
    vec![Effect::Search { request, wanted, cursor: Some(cursor) }]
}

/// Opens the trace of the selected span, with the cursor on the span.
fn open(state: &mut State) -> Vec<Effect> {
    let Some((trace, span)) = state.search.span().map(|span| (span.trace_id, span.id)) else {
        return Vec::new();
    };
    let effects = go(state, Place { screen: 1, trace: Some(trace) });
    if let Some(open) = &mut state.detail {
        open.wanted = Some(span);
        open.from = SEARCH;
    }
    effects
}
