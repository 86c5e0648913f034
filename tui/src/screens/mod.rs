//! What each screen draws. Drawing reads the state and changes nothing.

pub mod detail;
pub mod dialog;
pub mod evals;
pub mod help;
pub mod manage;
pub mod metrics;
pub mod notice;
pub mod palette;
pub mod picker;
pub mod placeholder;
pub mod search;
pub mod traces;
