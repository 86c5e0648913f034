//! Judging what an application answered: the 25 built-in evaluators and what tenants declare.
//!
//! Everything here is data and pure functions. What is judged comes as a [`Subject`], read from
//! the database by the caller; the answer of a judge model comes as text, fetched by the caller.
//! On every evaluator 1.0 is good.

pub mod budget;
pub mod builtin;
pub mod custom;
pub mod definition;
mod described;
mod form;
pub mod judge;
mod language;
mod pattern;
mod pii;
mod plain;
mod schema;
mod sentence;
mod sentiment;
pub mod subject;
pub mod target;
mod tool_use;
pub mod verdict;

pub use definition::{ConfigProblem, Definition, Rule};
pub use subject::Subject;
pub use verdict::{Unjudged, Verdict};
