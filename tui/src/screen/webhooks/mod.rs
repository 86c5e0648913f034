//! Screen 6: webhooks, the test of one, and the log of its deliveries.

mod change;
mod form;
pub mod keys;
mod layout;
mod records;
pub mod state;
#[cfg(test)]
mod tests;
mod update;
mod view;

use crate::{
    keymap::Scope,
    shell::{Screen, ScreenLines, Tab},
};

use keys::{DELIVERIES_SCOPE, WEBHOOKS_SCOPE};
use state::{Webhooks, WebhooksSection};

/// The digit of the screen.
pub const SCREEN_DIGIT: u8 = 6;

impl Screen for Webhooks {
    fn tab(&self) -> Tab {
        Tab { digit: SCREEN_DIGIT, title: "Webhooks", short: "Hooks" }
    }

    fn scope(&self) -> Scope {
        match self.section {
            WebhooksSection::List => WEBHOOKS_SCOPE,
            WebhooksSection::Deliveries => DELIVERIES_SCOPE,
        }
    }

    fn reset(&mut self) {
        *self = Self::default();
    }
}

impl ScreenLines for Webhooks {}
