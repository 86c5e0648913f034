//! Asking a judge model and reading its answer: rubrics, the fence around what is judged, the
//! shape of the answer. The call itself is the server's.
//!
//! [`ask`] makes the messages and the schema of the answer, [`read`] makes a verdict of the
//! answer, [`repair`] is said once when it could not.
//!
//! **Invariant:** what a judge is told to do comes from a rubric, a tenant's template or a rule's
//! config. Nothing of a trace, not even a tool's or a document's name, stands outside the fence.

mod ask;
mod fence;
mod instructions;
mod reply;
mod rubric;
mod scale;
mod section;

pub use ask::{Ask, MOST_SHOWN, ask};
pub use fence::Token;
pub use instructions::Instructions;
pub use reply::{Unreadable, read, repair};
pub use rubric::{Level, Need, Prefers, Rubric, options};
pub use scale::{Labelled, Scale};
pub use section::Part;

#[cfg(test)]
mod tests;
