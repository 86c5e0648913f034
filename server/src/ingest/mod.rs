//! Ingest: from a request's body to rows that are committed.
//!
//! The path: the HTTP handler decodes ([`semantics::otlp`], or the items of [`api::ingest`]),
//! this module makes [`part`]s of it (prices, classifies, compresses; no I/O, in parallel),
//! and the [`writer`] commits what has queued as one transaction.

pub mod checked;
mod exported;
mod external;
pub mod item;
pub mod part;
pub mod prices;
pub mod spans;
pub mod terms;
pub mod writer;
