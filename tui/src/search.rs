//! What screen 8 knows: what was looked for, the spans that were found, and which is selected.

mod excerpt;
mod line;

use api::{
    client::{
        Call,
        calls::{self, Page, TextSearch},
    },
    search::{NearSpan, SearchResult, SearchResults, VectorSearch},
    trace::Span,
};

pub use excerpt::{Excerpt, words};
pub use line::{FIELDS, Line};

use crate::msg::NetError;

/// Most spans kept; further pages are not asked for.
pub const CAPACITY: usize = 1_000;
/// Searches that are remembered.
const RECENT: usize = 50;

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The words, and which spans are compared with them.
    pub text: TextSearch,
    /// In place of the words: a span to find others like it.
    pub near: Option<Near>,
}

/// A span to find others like it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    /// Which one.
    pub span: NearSpan,
    /// Its name.
    pub name: String,
}

impl Wanted {
    /// The request for a page of it.
    pub fn call(&self, cursor: Option<String>) -> Call<SearchResults> {
        let Some(near) = &self.near else {
            return calls::search_text(&self.text, &Page { limit: None, cursor });
        };
        let project_id = self.text.project_id;
        let search = VectorSearch { near: Some(near.span), project_id, cursor, ..VectorSearch::default() };
        calls::search_vector(&search)
    }
}

/// A span that was found.
#[derive(Clone, Debug)]
pub struct Row {
    /// The span, and how near it is.
    pub result: SearchResult,
    /// The line of it that fits best.
    pub excerpt: Excerpt,
}

/// A search of before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recent {
    /// The line as it was typed.
    pub text: String,
    /// Spans of the first page.
    pub found: usize,
    /// There were more.
    pub more: bool,
}

/// The screen.
#[derive(Debug, Default)]
pub struct Search {
    /// The line in force.
    pub text: String,
    /// What it stands for; nothing before the first search.
    pub wanted: Option<Wanted>,
    /// The spans found, nearest first.
    pub rows: Vec<Row>,
    /// The row under the cursor.
    pub selected: usize,
    /// Where the server's further rows begin.
    pub next_cursor: Option<String>,
    /// The first page has arrived.
    pub loaded: bool,
    /// Spans that were compared.
    pub searched: i64,
    /// Spans that another embedding model made the vectors of.
    pub not_searched: i64,
    /// Why the last request failed, if it did.
    pub error: Option<NetError>,
    /// Lines used before, oldest first.
    pub history: Vec<String>,
    /// Searches of this console, newest first.
    pub recent: Vec<Recent>,
}

impl Search {
    /// The row under the cursor.
    pub fn current(&self) -> Option<&Row> {
        self.rows.get(self.selected)
    }

    /// The span under the cursor.
    pub fn span(&self) -> Option<&Span> {
        self.current().map(|row| &row.result.span)
    }

    /// Forgets what was found, because something else is looked for.
    pub fn begin(&mut self, text: String, wanted: Wanted) {
        *self = Self {
            text,
            wanted: Some(wanted),
            history: std::mem::take(&mut self.history),
            recent: std::mem::take(&mut self.recent),
            ..Self::default()
        };
    }

    /// Takes in a page.
    pub fn extend(&mut self, page: SearchResults) {
        let words = self.wanted.as_ref().map(|wanted| words(&wanted.text.q)).unwrap_or_default();
        let near = self.wanted.as_ref().and_then(|wanted| wanted.near.as_ref()).map(|near| near.span);
        // A span is most like itself.
        let itself = |span: &Span| near == Some(NearSpan { trace_id: span.trace_id, span_id: span.id });
        let fresh = page.results.into_iter().filter(|it| !itself(&it.span)).map(|result| {
            let excerpt = Excerpt::of(&result.span, &words);
            Row { result, excerpt }
        });
        self.rows.extend(fresh);
        self.next_cursor = page.next_cursor.filter(|_| page.has_more && self.rows.len() < CAPACITY);
        self.searched = page.searched;
        self.not_searched = page.not_searched;
        self.error = None;
        if !std::mem::replace(&mut self.loaded, true) {
            self.remember(page.has_more);
        }
    }

    fn remember(&mut self, more: bool) {
        if self.wanted.as_ref().is_some_and(|wanted| wanted.near.is_some()) {
            return;
        }
        let recent = Recent { text: self.text.clone(), found: self.rows.len(), more };
        self.recent.retain(|it| it.text != recent.text);
        self.recent.insert(0, recent);
        self.recent.truncate(RECENT);
    }
}
