//! Tests of the architecture: dependencies, imports, and the form of files.
//!
//! Each rule prints the file and the line that violate it, and the remedy. Files are read as text
//! ([`source`]). Clippy checks rules that need types, and the schema suite those that need a database.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod dependencies;
mod documents;
mod hygiene;
mod libraries;
mod library_modules;
mod modules;
mod source;
mod tables;
mod words;

/// Panics with every violation at once.
fn report(violations: Vec<String>) {
    assert!(violations.is_empty(), "{} to put right:\n  {}", violations.len(), violations.join("\n  "));
}
