//! Traces over HTTP: lists, details, streams, exports and sessions.

pub mod endpoints;
pub mod export;
pub mod sessions;
pub mod stream;
pub mod view;
