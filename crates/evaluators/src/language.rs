//! Whether a text is in a language: the question "is it this one", not "which is it".
//!
//! The script decides first, then the language asked for is held against all others of its script by
//! what words and letters of them are usual ([`table`]). Numbers, code, addresses and ids are left
//! out ([`prose`]); a text without words has no answer.

mod code;
mod decide;
mod names;
mod prose;
mod script;
mod table;

pub(crate) use decide::{Answer, ask, guess};
pub(crate) use names::{Language, LanguageName, find, named};
