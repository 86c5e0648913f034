//! The keys of Metrics.

use super::SCREEN_DIGIT;
use crate::keymap::{
    Action, Binding, Group, Scope, bindings,
    groups::{
        COPY_CURL_KEYS, END_STEP_KEYS, EXPORT_KEYS, OPEN_KEYS, REFRESH_KEYS, SCREEN_KEYS, SCREEN_STEP_KEYS,
    },
};

/// Shows the values as a table, or the chart.
pub const TOGGLE_NUMBERS: Action = Action::Custom("metrics.numbers");
/// Refreshes the values automatically, or not.
pub const TOGGLE_REFRESH: Action = Action::Custom("metrics.auto");

/// The window and the chart.
pub const METRIC_KEYS: Group = Group { name: "metrics", position: 10 };

/// The metrics.
pub const METRICS_SCOPE: Scope = Scope::screen(
    "Metrics",
    &[OPEN_KEYS, METRIC_KEYS, COPY_CURL_KEYS, EXPORT_KEYS, REFRESH_KEYS, END_STEP_KEYS, SCREEN_STEP_KEYS],
);

/// The scopes of the screen.
pub const SCREEN_SCOPES: &[Scope] = &[METRICS_SCOPE];

/// The bindings of the screen.
pub const SCREEN_BINDINGS: &[Binding] = bindings! {
    Action::Screen(SCREEN_DIGIT), "screen.metrics", ["3"], SCREEN_KEYS, "Metrics";
    Action::Left, "metrics.earlier", ["left", "h"], METRIC_KEYS, "previous column", "cursor";
    Action::Right, "metrics.later", ["right", "l"], METRIC_KEYS, "next column";
    Action::PreviousTab, "metrics.shorter", ["["], METRIC_KEYS, "shorter window", "window";
    Action::NextTab, "metrics.longer", ["]"], METRIC_KEYS, "longer window";
    TOGGLE_NUMBERS, "metrics.numbers", ["v"], METRIC_KEYS, "switch between chart and numbers", "numbers";
    TOGGLE_REFRESH, "metrics.auto", ["t"], METRIC_KEYS, "turn automatic refresh on or off", "auto";
};
