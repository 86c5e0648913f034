//! Screen 5: prompt deployments and control actions that wait for a decision, and the history of both.

mod change;
mod editor;
mod excerpt;
mod filter;
pub mod keys;
mod layout;
mod queue;
mod records;
pub mod state;
#[cfg(test)]
mod tests;
pub mod update;
mod view;

use crate::{
    input::LineKind,
    keymap::Scope,
    shell::{Screen, Shell, Tab},
};

use keys::APPROVALS_SCOPE;
use state::Approvals;

/// The digit of the screen.
pub const SCREEN_DIGIT: u8 = 5;
/// The filter line of the queue.
pub const FILTER_LINE: LineKind = LineKind { prompt: " / ", hint: "tab completes" };

impl Screen for Approvals {
    fn tab(&self) -> Tab {
        Tab { digit: SCREEN_DIGIT, title: "Approvals", short: "Appr" }
    }

    fn scope(&self) -> Scope {
        APPROVALS_SCOPE
    }

    fn reset(&mut self) {
        let history = std::mem::take(&mut self.history);
        *self = Self { history, is_unified: self.is_unified, ..Self::default() };
    }

    fn settle(&mut self, shell: &Shell) {
        view::compose_diff(self, shell);
    }
}
