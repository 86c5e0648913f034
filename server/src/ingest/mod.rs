//! Ingest: from a request body to committed rows.
//!
//! The HTTP handler decodes the body ([`semantics::otlp`], or the items of [`api::ingest`]); this
//! module creates [`part`]s from it (prices, classifies, compresses; no I/O, in parallel); and the
//! [`writer`] commits all queued parts in one transaction.

pub mod checked;
pub mod endpoints;
mod exported;
mod external;
pub mod item;
pub mod object_text;
pub mod part;
pub mod prices;
pub mod spans;
pub mod terms;
pub mod writer;
