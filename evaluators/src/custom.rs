//! Evaluators that tenants declare.

pub mod llm;
