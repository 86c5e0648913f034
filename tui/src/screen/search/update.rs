//! Key handling of the screen Search, and its requests.

use api::{Timestamp, client::calls::TextSearch, filter::when::Clock, search::NearSpan};

use crate::{
    ids::IdError,
    input::{Input, InputKind},
    keymap::Action,
    net::{Destination, Effect, NetError, Response},
    screen::search::{
        SEARCH_LINE,
        keys::FIND_NEIGHBOURS,
        layout::parts,
        line::SearchLine,
        state::{Neighbour, Search, SearchQuery, SearchRequest},
    },
    shell::{LineError, Pending, ScreenActions, ScreenRequests, Shell, notice::describe, trouble},
    travel,
};

/// The next page is requested when the cursor is this many rows from the last loaded one.
const PREFETCH_ROWS: usize = 10;

impl ScreenActions for Search {
    fn enter(&mut self, shell: &mut Shell) -> Vec<Effect> {
        // A search can name a project.
        if shell.projects.loaded { Vec::new() } else { vec![shell.load_projects()] }
    }

    fn act(&mut self, shell: &mut Shell, action: Action) -> Vec<Effect> {
        let page = parts(shell.size).rows().max(2) - 1;
        let last = self.rows.len().saturating_sub(1);
        if let Some(to) = travel::to(action, self.selected, last, page) {
            self.selected = to;
            return load_more(self, shell);
        }
        match action {
            Action::EditSearch => {
                shell.edit(Input::new(InputKind::Screen(SEARCH_LINE), &self.text));
                Vec::new()
            }
            Action::Open => open(self),
            Action::Refresh => match self.query.clone() {
                Some(query) => start(self, shell, self.text.clone(), query),
                None => Vec::new(),
            },
            FIND_NEIGHBOURS => search_neighbours(self, shell),
            Action::Back => vec![Effect::Go(Destination::Screen(1))],
            _ => Vec::new(),
        }
    }

    fn project_changed(&mut self, shell: &mut Shell) -> Vec<Effect> {
        if self.query.is_none() || shell.screen != super::SCREEN_DIGIT {
            return Vec::new();
        }
        let text = self.text.clone();
        submit(self, shell, &text).unwrap_or_default()
    }
}

impl ScreenRequests for Search {
    type Purpose = SearchRequest;

    fn pending(&self) -> &Pending<SearchRequest> {
        &self.pending
    }

    fn pending_mut(&mut self) -> &mut Pending<SearchRequest> {
        &mut self.pending
    }

    fn fill(
        &mut self,
        _shell: &mut Shell,
        _purpose: SearchRequest,
        _sent: Timestamp,
        response: Response,
    ) -> Result<Vec<Effect>, NetError> {
        self.extend(response.decoded()?);
        Ok(Vec::new())
    }

    fn fail(&mut self, shell: &mut Shell, _purpose: SearchRequest, error: NetError) -> Vec<Effect> {
        let mut effects = trouble::unauthorized(shell, &error);
        shell.report(describe(&error));
        // The plan differs from the known one, and the panel names it.
        if error.status == Some(402) {
            effects.push(shell.load_me());
        }
        self.error = Some(error);
        effects
    }
}

/// Runs the search that a line describes.
///
/// # Errors
/// Fails with the position of the first wrong character, from 0, and the problem.
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
    vec![search.pending.send(shell.ticket(), SearchRequest::First, query.call(None))]
}

/// Requests the next page when the cursor comes near the last loaded row.
fn load_more(search: &mut Search, shell: &mut Shell) -> Vec<Effect> {
    let near = search.selected + PREFETCH_ROWS >= search.rows.len();
    let cursor = search.next_cursor.clone().filter(|_| near);
    let (Some(cursor), Some(query)) = (cursor, search.query.clone()) else { return Vec::new() };
    if search.pending.has(|it| *it == SearchRequest::More) {
        return Vec::new();
    }
    vec![search.pending.send(shell.ticket(), SearchRequest::More, query.call(Some(cursor)))]
}

/// Opens the trace of the selected span, with the cursor on the span.
fn open(search: &Search) -> Vec<Effect> {
    let Some(span) = search.span() else { return Vec::new() };
    let trace =
        Destination::Trace { id: span.trace_id, span: Some(span.id), from: Some(super::SCREEN_DIGIT) };
    vec![Effect::Go(trace)]
}
