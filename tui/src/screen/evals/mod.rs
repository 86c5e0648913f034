//! Screen 2: evaluations and the rules that run them.

pub mod change;
mod editor;
mod form;
pub mod keys;
mod layout;
mod line;
mod records;
pub mod rules;
pub mod state;
#[cfg(test)]
pub mod tests;
pub mod update;
mod view;

use crate::{
    input::LineKind,
    keymap::Scope,
    shell::{Screen, Shell, Tab},
};

use keys::{EVALS_SCOPE, RULES_SCOPE};
use layout::EvalsLayout;
use state::{Evals, EvalsSection};

/// The digit of the screen.
pub const SCREEN_DIGIT: u8 = 2;
/// The filter line.
pub const FILTER_LINE: LineKind = LineKind { prompt: " / ", hint: "tab completes" };
/// The line that names the trace whose decisions are shown.
pub const WHY_LINE: LineKind = LineKind { prompt: " why ", hint: "id of a trace, or none" };

/// Returns the layout of the screen.
fn parts(evals: &Evals, shell: &Shell) -> EvalsLayout {
    layout::parts(shell.size, evals.part, evals.rules.has_result())
}

impl Screen for Evals {
    fn tab(&self) -> Tab {
        Tab { digit: SCREEN_DIGIT, title: "Evals", short: "Evals" }
    }

    fn scope(&self) -> Scope {
        match self.part {
            EvalsSection::List => EVALS_SCOPE,
            EvalsSection::Rules => RULES_SCOPE,
        }
    }

    fn reset(&mut self) {
        let history = std::mem::take(&mut self.history);
        *self = Self::default();
        self.history = history;
    }
}
