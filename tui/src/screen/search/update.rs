//! What the keys of Search do, and the requests they send.

use api::{client::calls::TextSearch, filter::when::Clock, search::NearSpan};

use crate::{
    ids::IdError,
    input::{Input, InputKind},
    keymap::Action,
    net::{Destination, Effect},
    screen::search::{
        SEARCH_LINE,
        keys::FIND_NEIGHBOURS,
        layout::parts,
        line::SearchLine,
        state::{Neighbour, Search, SearchQuery, SearchRequest},
    },
    shell::{LineError, Shell},
    travel,
};

/// The next page is requested when the cursor is this many rows from the last loaded one.
const PREFETCH_ROWS: usize = 10;

/// Performs an action of the screen.
pub fn act(search: &mut Search, shell: &mut Shell, action: Action) -> Vec<Effect> {
    let page = parts(shell.size).rows().max(2) - 1;
    let last = search.rows.len().saturating_sub(1);
    if let Some(to) = travel::to(action, search.selected, last, page) {
        search.selected = to;
        return load_more(search, shell);
    }
    match action {
        Action::EditSearch => {
            shell.edit(Input::new(InputKind::Screen(SEARCH_LINE), &search.text));
            Vec::new()
        }
        Action::Open => open(search),
        Action::Refresh => match search.query.clone() {
            Some(query) => start(search, shell, search.text.clone(), query),
            None => Vec::new(),
        },
        FIND_NEIGHBOURS => search_neighbours(search, shell),
        Action::Back => vec![Effect::Go(Destination::Screen(1))],
        _ => Vec::new(),
    }
}

/// Runs the search that a line describes.
///
/// # Errors
/// The position of the first wrong character, from 0, and the problem.
pub fn submit(search: &mut Search, shell: &mut Shell, text: &str) -> Result<Vec<Effect>, LineError> {
    let line = SearchLine::parse(text, &Clock::of(&shell.zone.of(shell.now)))?;
    let project_id = match &line.project {
        None => shell.project_id(),
        Some((_, name)) if name == "*" => None,
        Some((at, name)) => {
            let project = shell.projects.resolve(name).map_err(|error| {
                let problem = match error {
                    IdError::NotFound => format!("no project `{name}`"),
                    IdError::Ambiguous => format!("`{name}` is the end of more than one project's id"),
                };
                (*at, problem)
            })?;
            Some(project.id)
        }
    };
    let SearchLine { words: q, kind, model, from, to, .. } = line;
    let query = SearchQuery { text: TextSearch { q, project_id, from, to, kind, model }, near: None };
    Ok(start(search, shell, text.to_owned(), query))
}

/// Searches for spans like the selected one. No embedding is needed: the span has its vector.
fn search_neighbours(search: &mut Search, shell: &mut Shell) -> Vec<Effect> {
    let Some(span) = search.span() else {
        shell.notify("no span is selected");
        return Vec::new();
    };
    let near =
        Neighbour { span: NearSpan { trace_id: span.trace_id, span_id: span.id }, name: span.name.clone() };
    let project_id = search.query.as_ref().and_then(|query| query.text.project_id);
    let text = TextSearch { project_id, ..TextSearch::default() };
    start(search, shell, search.text.clone(), SearchQuery { text, near: Some(near) })
}

fn start(search: &mut Search, shell: &mut Shell, text: String, query: SearchQuery) -> Vec<Effect> {
    search.start(text, query.clone());
    search.pending.abandon(|it| *it == SearchRequest::More);
    let request = search.pending.start(shell.ticket(), SearchRequest::First);
    vec![Effect::Fetch(query.fetch(request, None))]
}

/// Repeats the search after the project changed, because the spans found may belong to other projects.
pub fn reload(search: &mut Search, shell: &mut Shell) -> Vec<Effect> {
    if search.query.is_none() || shell.screen != super::SCREEN_DIGIT {
        return Vec::new();
    }
    let text = search.text.clone();
    submit(search, shell, &text).unwrap_or_default()
}

/// Requests the next page when the cursor comes near the last loaded row.
fn load_more(search: &mut Search, shell: &mut Shell) -> Vec<Effect> {
    let near = search.selected + PREFETCH_ROWS >= search.rows.len();
    let cursor = search.next_cursor.clone().filter(|_| near);
    let (Some(cursor), Some(query)) = (cursor, search.query.clone()) else { return Vec::new() };
    if search.pending.has(|it| *it == SearchRequest::More) {
        return Vec::new();
    }
    let request = search.pending.start(shell.ticket(), SearchRequest::More);
    vec![Effect::Fetch(query.fetch(request, Some(cursor)))]
}

/// Opens the trace of the selected span, with the cursor on the span.
fn open(search: &Search) -> Vec<Effect> {
    let Some(span) = search.span() else { return Vec::new() };
    let trace =
        Destination::Trace { id: span.trace_id, span: Some(span.id), from: Some(super::SCREEN_DIGIT) };
    vec![Effect::Go(trace)]
}
