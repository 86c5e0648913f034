//! Screen 8: spans by meaning.

mod editor;
mod excerpt;
pub mod keys;
mod layout;
mod line;
mod records;
pub mod state;
#[cfg(test)]
pub mod tests;
mod update;
mod view;

use crate::{
    change::NoChange,
    input::LineKind,
    keymap::Scope,
    shell::{Screen, ScreenChanges, Tab},
};

use state::Search;

/// The digit of the screen.
pub const SCREEN_DIGIT: u8 = 8;
/// The line that holds the words of a search.
pub const SEARCH_LINE: LineKind = LineKind { prompt: " ? ", hint: "tab completes" };

impl Screen for Search {
    fn tab(&self) -> Tab {
        Tab { digit: SCREEN_DIGIT, title: "Search", short: "Search" }
    }

    fn scope(&self) -> Scope {
        keys::SEARCH_SCOPE
    }

    fn reset(&mut self) {
        *self = Self { history: std::mem::take(&mut self.history), ..Self::default() };
    }
}

impl ScreenChanges for Search {
    type Change = NoChange;
}
