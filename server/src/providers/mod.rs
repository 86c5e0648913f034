//! The external services that this process calls through the crate `outbound`: model providers
//! (`embedding`, `judge`) and identity providers (`jwks`).
//!
//! `json_post` builds requests to model providers, `provider_error` parses their error responses, and
//! `circuit_breaker` contains the circuit breakers.

pub mod chat;
pub mod circuit_breaker;
pub mod embedding;
mod json_post;
pub mod judge;
pub mod jwks;
mod provider_error;

/// OpenAI's base URL.
pub const OPENAI: &str = "https://api.openai.com/v1";
