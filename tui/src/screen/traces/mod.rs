//! Screen 1: the list of traces and the opened trace.

pub mod detail;
mod editor;
pub mod feed;
pub mod keys;
mod layout;
mod records;
pub mod state;
mod update;
mod view;

use uuid::Uuid;

use crate::{
    change::NoChange,
    input::LineKind,
    keymap::Scope,
    net::Effect,
    shell::{Screen, ScreenChanges, Shell, Tab},
};

use detail::{Detail, content::scores::Keys};
use keys::{LIST_SCOPE, PANE_SCOPE, TREE_SCOPE};
use state::Traces;

/// The digit of the screen.
pub const SCREEN_DIGIT: u8 = 1;
/// The filter line.
pub const FILTER_LINE: LineKind = LineKind { prompt: " / ", hint: "tab completes" };

impl Traces {
    /// Opens a trace, with the cursor on a span.
    pub fn open(&mut self, shell: &mut Shell, id: Uuid, span: Option<Uuid>, from: Option<u8>) -> Vec<Effect> {
        let effects = detail::update::open(self, shell, id);
        if let (Some(open), Some(from)) = (&mut self.detail, from) {
            open.wanted = span;
            open.from = from;
        }
        effects
    }

    /// Returns the opened trace if it is this one. A response can belong to a trace that was closed.
    fn opened(&mut self, id: Uuid) -> Option<&mut Detail> {
        self.detail.as_mut().filter(|open| open.id == id)
    }
}

impl Screen for Traces {
    fn tab(&self) -> Tab {
        Tab { digit: SCREEN_DIGIT, title: "Traces", short: "Traces" }
    }

    fn scope(&self) -> Scope {
        match &self.detail {
            Some(detail) if detail.pane().is_some() => PANE_SCOPE,
            Some(_) => TREE_SCOPE,
            None => LIST_SCOPE,
        }
    }

    fn reset(&mut self) {
        let history = std::mem::take(&mut self.filter.history);
        *self = Self::default();
        self.filter.history = history;
    }

    fn settle(&mut self, shell: &Shell) {
        if let Some(detail) = &mut self.detail {
            detail.compose(shell.size, shell.reader(), &Keys::of(shell));
        }
    }
}

impl ScreenChanges for Traces {
    type Change = NoChange;
}
