//! The records of Search: the query, the spans found, and which is selected.

use api::{
    client::{
        Body, Call,
        calls::{self, Page, TextSearch},
    },
    search::{NearSpan, SearchResult, SearchResults, VectorSearch},
    trace::Span,
};

use crate::{
    net::NetError,
    screen::search::excerpt::{Excerpt, words},
    shell::{Pending, RequestPurpose, Shell},
};

/// Maximum number of spans that are kept; further pages are not requested.
pub const MAX_SPANS: usize = 1_000;
/// Maximum number of recent searches.
const MAX_RECENT: usize = 50;

/// The query of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    /// The words, and the filters of the spans compared with them.
    pub text: TextSearch,
    /// In place of the words: the span whose neighbours are searched.
    pub near: Option<Neighbour>,
}

/// A span whose neighbours are searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The span.
    pub span: NearSpan,
    /// The name of the span.
    pub name: String,
}

impl SearchQuery {
    /// Returns the call for a page of the results.
    pub fn call(&self, cursor: Option<String>) -> Call<SearchResults> {
        let Some(near) = &self.near else {
            return calls::search_text(&self.text, &Page { limit: None, cursor });
        };
        let project_id = self.text.project_id;
        let search = VectorSearch { near: Some(near.span), project_id, cursor, ..VectorSearch::default() };
        calls::search_vector(&search)
    }

    /// Returns the search as a `curl` command.
    pub fn curl(&self, shell: &Shell) -> String {
        let call = self.call(None);
        let command = shell.curl(&call.target());
        // The body holds ids and words of the API only, so nothing in it can end the quotes.
        match &call.body {
            Body::Json(body) => format!("{command} -H 'Content-Type: application/json' -d '{body}'"),
            Body::Empty | Body::Bytes { .. } => command,
        }
    }
}

/// The purpose of an open request of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchRequest {
    /// The first page.
    First,
    /// A further page.
    More,
}

impl RequestPurpose for SearchRequest {}

/// A found span, with the line of its text that is shown.
#[derive(Clone, Debug)]
pub struct FoundSpan {
    /// The span and its similarity.
    pub result: SearchResult,
    /// The line with the most words of the query.
    pub excerpt: Excerpt,
}

/// A recent search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecentSearch {
    /// The line as it was typed.
    pub text: String,
    /// The number of spans on the first page.
    pub found: usize,
    /// Whether there were more.
    pub has_more: bool,
}

/// The state of the screen.
#[derive(Debug, Default)]
pub struct Search {
    /// The line of the current search.
    pub text: String,
    /// The query of that line; none before the first search.
    pub query: Option<SearchQuery>,
    /// The spans found, nearest first.
    pub rows: Vec<FoundSpan>,
    /// The row under the cursor.
    pub selected: usize,
    /// The cursor of the next page.
    pub next_cursor: Option<String>,
    /// Whether the first page has arrived.
    pub loaded: bool,
    /// Number of spans that were compared.
    pub searched: i64,
    /// Number of spans whose vectors are of another embedding model.
    pub not_searched: i64,
    /// The error of the last request, if it failed.
    pub error: Option<NetError>,
    /// Lines used before, oldest first.
    pub history: Vec<String>,
    /// Recent searches, newest first.
    pub recent: Vec<RecentSearch>,
    /// Open requests.
    pub pending: Pending<SearchRequest>,
}

impl Search {
    /// Returns the row under the cursor.
    pub fn current(&self) -> Option<&FoundSpan> {
        self.rows.get(self.selected)
    }

    /// Returns the span under the cursor.
    pub fn span(&self) -> Option<&Span> {
        self.current().map(|row| &row.result.span)
    }

    /// Starts a search and discards the results of the one before.
    pub fn start(&mut self, text: String, query: SearchQuery) {
        *self = Self {
            text,
            query: Some(query),
            history: std::mem::take(&mut self.history),
            recent: std::mem::take(&mut self.recent),
            pending: std::mem::take(&mut self.pending),
            ..Self::default()
        };
    }

    /// Adds a page of results.
    pub fn extend(&mut self, page: SearchResults) {
        let words = self.query.as_ref().map(|query| words(&query.text.q)).unwrap_or_default();
        let near = self.query.as_ref().and_then(|query| query.near.as_ref()).map(|near| near.span);
        // The nearest neighbour of a span is the span itself.
        let is_itself = |span: &Span| near == Some(NearSpan { trace_id: span.trace_id, span_id: span.id });
        let fresh = page.results.into_iter().filter(|it| !is_itself(&it.span)).map(|result| {
            let excerpt = Excerpt::of(&result.span, &words);
            FoundSpan { result, excerpt }
        });
        self.rows.extend(fresh);
        self.next_cursor = page.next_cursor.filter(|_| page.has_more && self.rows.len() < MAX_SPANS);
        self.searched = page.searched;
        self.not_searched = page.not_searched;
        self.error = None;
        if !std::mem::replace(&mut self.loaded, true) {
            self.remember(page.has_more);
        }
    }

    fn remember(&mut self, has_more: bool) {
        if self.query.as_ref().is_some_and(|query| query.near.is_some()) {
            return;
        }
        let recent = RecentSearch { text: self.text.clone(), found: self.rows.len(), has_more };
        self.recent.retain(|it| it.text != recent.text);
        self.recent.insert(0, recent);
        self.recent.truncate(MAX_RECENT);
    }
}
