//! Evaluators: the built-in ones, and the custom ones that tenants define; and redaction, which uses their detectors.
//!
//! This crate contains data and pure functions. The caller reads the subject from the database as a
//! [`Subject`], and fetches the response of a judge as text. A score of 1.0 is good for every evaluator.

mod budget;
pub mod builtin;
mod code;
mod config;
mod config_problem;
pub mod custom;
pub mod definition;
mod described;
mod form;
pub mod interruption;
pub mod judge;
mod language;
mod pattern;
mod pii;
mod plain;
pub mod redaction;
mod schema;
mod sentence;
mod sentiment;
pub mod subject;
pub mod target;
mod tool_use;
pub mod verdict;

pub use code::CompiledEvaluator;
pub use config::ConfigProblem;
pub use definition::Definition;
pub use subject::Subject;
pub use verdict::{NotEvaluated, Verdict};
