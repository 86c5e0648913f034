//! Screen 7: API keys, projects, the plan and rejected input.

pub mod change;
mod form;
pub mod keys;
mod layout;
mod records;
pub mod state;
#[cfg(test)]
pub mod tests;
pub mod update;
mod view;

use crate::{
    keymap::Scope,
    shell::{Screen, ScreenLines, Tab},
};

use state::Manage;

/// The digit of the screen.
pub const SCREEN_DIGIT: u8 = 7;

impl Screen for Manage {
    fn tab(&self) -> Tab {
        Tab { digit: SCREEN_DIGIT, title: "Keys & Projects", short: "Keys" }
    }

    fn scope(&self) -> Scope {
        self.section.scope()
    }

    fn reset(&mut self) {
        *self = Self::default();
    }
}

impl ScreenLines for Manage {}
