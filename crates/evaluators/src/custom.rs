//! Custom evaluators, which tenants define.

pub mod config;
pub mod llm;
pub mod rule;
