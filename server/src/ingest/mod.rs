//! Ingest: from a request body to committed rows.
//!
//! The HTTP handler decodes the body ([`semantics::otlp`], or the items of [`api::ingest`]); this
//! module converts it to chunks ([`spans`], [`trace_item`]: prices, classifies, compresses; no I/O, in parallel); and
//! the [`writer`] commits all queued chunks in one transaction.

pub mod endpoints;
pub mod exported_spans;
pub mod external_evaluations;
pub mod object_text;
pub mod options;
pub mod prices;
pub mod redaction;
pub mod rejections;
pub mod spans;
mod text_bodies;
pub mod trace_item;
pub mod trace_rollup;
pub mod validation;
pub mod writer;
