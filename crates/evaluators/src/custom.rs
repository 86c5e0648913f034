//! Evaluators that tenants declare.

pub mod config;
pub mod llm;
pub mod rule;
