//! Decides whether a text is in a given language; it does not identify the language of a text.
//!
//! The script decides first. Then the table of usual words and letters ([`table`]) compares the requested
//! language with all others of its script. Numbers, code, addresses and IDs are excluded ([`prose`]); a text
//! without words has no result.

mod code;
mod decide;
mod names;
mod prose;
mod script;
mod table;

pub(crate) use decide::{LanguageShare, ask, guess};
pub(crate) use names::{Language, LanguageName, find, named};
