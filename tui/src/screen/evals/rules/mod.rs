//! The rules that run evaluations.

pub mod state;
#[cfg(test)]
pub mod tests;
pub mod update;
pub mod view;
