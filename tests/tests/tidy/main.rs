//! The architecture's sentences, as tests: who may use what, how files look, where arrows point.
//!
//! Each rule prints the file and line that break it and what to do instead. Files are read as
//! text ([`source`]); what needs types is clippy's work, and what needs a database is the
//! schema suite's.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod dependencies;
mod documents;
mod hygiene;
mod modules;
mod places;
mod source;
mod tables;
mod words;

/// Fails with every violation at once, so that one run shows all there is to do.
fn report(violations: Vec<String>) {
    assert!(violations.is_empty(), "{} to put right:\n  {}", violations.len(), violations.join("\n  "));
}
