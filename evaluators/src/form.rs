//! Forms that a text can have, each as its standard says and nothing more lenient.
//!
//! **Invariant.** A text of any length and nesting is read in time linear in it and memory
//! proportional to its nesting, without recursion.

pub(crate) mod json;
pub(crate) mod length;
pub(crate) mod pattern;
