//! The screens, one folder each.

pub mod approvals;
pub mod evals;
mod failures;
pub mod manage;
pub mod metrics;
pub mod search;
pub mod traces;
mod webhooks;

use crate::{
    keymap::{Binding, Keymap, KeymapError, OVERLAY_SCOPES, Rebinding, SHARED_BINDINGS, Scope},
    shell::Screen,
};

/// The number of screens.
pub const SCREEN_COUNT: u8 = 8;

/// The key bindings of all screens.
const BINDING_TABLES: &[&[Binding]] = &[
    SHARED_BINDINGS,
    manage::keys::SCREEN_BINDINGS,
    evals::keys::SCREEN_BINDINGS,
    search::keys::SCREEN_BINDINGS,
    traces::keys::SCREEN_BINDINGS,
    metrics::keys::SCREEN_BINDINGS,
    failures::keys::SCREEN_BINDINGS,
    webhooks::keys::SCREEN_BINDINGS,
    approvals::keys::SCREEN_BINDINGS,
];

/// The key scopes of all screens.
const SCREEN_SCOPES: &[&[Scope]] = &[
    traces::keys::SCREEN_SCOPES,
    evals::keys::SCREEN_SCOPES,
    metrics::keys::SCREEN_SCOPES,
    search::keys::SCREEN_SCOPES,
    manage::keys::SCREEN_SCOPES,
    failures::keys::SCREEN_SCOPES,
    webhooks::keys::SCREEN_SCOPES,
    approvals::keys::SCREEN_SCOPES,
    OVERLAY_SCOPES,
];

/// Returns the key map of the console with the keys of a configuration.
///
/// # Errors
/// The configuration cannot be used.
pub fn keymap(chosen: &Rebinding) -> Result<Keymap, KeymapError> {
    Keymap::new(BINDING_TABLES, SCREEN_SCOPES.concat(), chosen)
}

/// Returns the key map of the console with its own keys.
pub fn default_keymap() -> Keymap {
    Keymap::defaults(BINDING_TABLES, SCREEN_SCOPES.concat())
}

/// All screens.
#[derive(Debug, Default)]
pub struct Screens {
    /// Screen 1.
    pub traces: traces::state::Traces,
    /// Screen 2.
    pub evals: evals::state::Evals,
    /// Screen 3.
    pub metrics: metrics::state::Metrics,
    /// Screen 4.
    pub failures: failures::state::Failures,
    /// Screen 5.
    pub approvals: approvals::state::Approvals,
    /// Screen 6.
    pub webhooks: webhooks::state::Webhooks,
    /// Screen 7.
    pub manage: manage::state::Manage,
    /// Screen 8.
    pub search: search::state::Search,
}

impl Screens {
    /// Returns the screens in the order of their digits.
    pub fn all(&self) -> [&dyn Screen; SCREEN_COUNT as usize] {
        [
            &self.traces,
            &self.evals,
            &self.metrics,
            &self.failures,
            &self.approvals,
            &self.webhooks,
            &self.manage,
            &self.search,
        ]
    }

    /// Returns the screens in the order of their digits.
    pub fn all_mut(&mut self) -> [&mut dyn Screen; SCREEN_COUNT as usize] {
        [
            &mut self.traces,
            &mut self.evals,
            &mut self.metrics,
            &mut self.failures,
            &mut self.approvals,
            &mut self.webhooks,
            &mut self.manage,
            &mut self.search,
        ]
    }

    /// Returns the screen of a digit.
    pub fn get(&self, digit: u8) -> &dyn Screen {
        self.all().into_iter().find(|screen| screen.tab().digit == digit).unwrap_or(&self.traces)
    }

    /// Returns the screen of a digit.
    pub fn get_mut(&mut self, digit: u8) -> &mut dyn Screen {
        let known = self.all().iter().any(|screen| screen.tab().digit == digit);
        let digit = if known { digit } else { traces::SCREEN_DIGIT };
        let [first, rest @ ..] = self.all_mut();
        rest.into_iter().fold(first, |found, next| if next.tab().digit == digit { next } else { found })
    }

    /// Returns the digit of the screen that `name` identifies: a digit, or the beginning of a title.
    pub fn digit(&self, name: &str) -> Option<u8> {
        let name = name.to_lowercase();
        let matches = |tab: &crate::shell::Tab| {
            let titled = !name.is_empty() && tab.title.to_lowercase().starts_with(&name);
            titled || name == tab.digit.to_string()
        };
        self.all().into_iter().map(|screen| screen.tab()).find(matches).map(|tab| tab.digit)
    }
}
