//! Endpoints that accept traces.

pub mod json;
pub mod otlp;
mod project_of;
