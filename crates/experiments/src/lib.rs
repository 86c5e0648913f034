//! Decides experiments with prompts: does a candidate score at least as well as the baseline?
//!
//! The caller sums up the scores of each arm in a [`Sample`] and calls [`decide`] once, when both arms are large enough.
//! A [`Comparison`] has the figures of the t-test. After the candidate is shipped, [`watch()`] compares further scores with
//! those of the baseline.
//!
//! **Invariant:** no I/O, no clock, no randomness.

mod comparison;
mod decision;
mod sample;
mod watch;

pub use comparison::Comparison;
pub use decision::{Decision, Requirements, Scores, decide};
pub use sample::Sample;
pub use watch::{Watch, watch};
