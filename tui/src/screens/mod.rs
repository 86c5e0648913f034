//! What each screen draws. Drawing reads the state and changes nothing.

pub mod detail;
pub mod help;
pub mod notice;
pub mod picker;
pub mod placeholder;
pub mod traces;
