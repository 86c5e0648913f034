//! Endpoints of evaluations, eval rules and evaluators.

pub mod eval_rules;
pub mod evaluations;
pub mod evaluators;
