//! Screen 4: failure clusters, anomalies and bad feedback.

mod change;
mod editor;
pub mod keys;
mod layout;
mod line;
mod records;
pub mod state;
#[cfg(test)]
mod tests;
mod update;
mod view;

use crate::{
    input::LineKind,
    keymap::Scope,
    shell::{Screen, Tab},
};

use keys::{ANOMALIES_SCOPE, CLUSTERS_SCOPE, EVENTS_SCOPE, FEEDBACK_SCOPE};
use state::{Failures, FailuresTab};

/// The digit of the screen.
pub const SCREEN_DIGIT: u8 = 4;
/// The filter line of the clusters.
pub const FILTER_LINE: LineKind = LineKind { prompt: " / ", hint: "tab completes" };

impl Screen for Failures {
    fn tab(&self) -> Tab {
        Tab { digit: SCREEN_DIGIT, title: "Failures", short: "Failures" }
    }

    fn scope(&self) -> Scope {
        match (self.tab, &self.events) {
            (FailuresTab::Clusters, Some(_)) => EVENTS_SCOPE,
            (FailuresTab::Clusters, None) => CLUSTERS_SCOPE,
            (FailuresTab::Anomalies, _) => ANOMALIES_SCOPE,
            (FailuresTab::Feedback, _) => FEEDBACK_SCOPE,
        }
    }

    fn reset(&mut self) {
        let history = std::mem::take(&mut self.history);
        *self = Self { history, ..Self::default() };
    }
}
