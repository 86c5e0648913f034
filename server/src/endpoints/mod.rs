//! Endpoints of nouns without a feature of their own, one file each.

pub mod api_document;
pub mod audit_log;
pub mod feedback;
pub mod health;
pub mod models;
pub mod projects;
pub mod server_metrics;
