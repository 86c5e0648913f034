//! Screen 3: metrics of traces.

mod change;
pub mod keys;
mod layout;
mod records;
pub mod state;
#[cfg(test)]
pub mod tests;
mod update;
mod view;

use crate::{
    change::NoChange,
    keymap::Scope,
    shell::{Screen, ScreenChanges, ScreenLines, Tab},
};

use state::Metrics;

/// The digit of the screen.
pub const SCREEN_DIGIT: u8 = 3;

impl Screen for Metrics {
    fn tab(&self) -> Tab {
        Tab { digit: SCREEN_DIGIT, title: "Metrics", short: "Metrics" }
    }

    fn scope(&self) -> Scope {
        keys::METRICS_SCOPE
    }

    fn reset(&mut self) {
        *self = Self { stretch: self.stretch, ..Self::default() };
    }
}

impl ScreenLines for Metrics {}

impl ScreenChanges for Metrics {
    type Change = NoChange;
}
