//! Requests to a judge and the parser of its responses: rubrics, the fence around trace data, the shape of a
//! response. The server makes the call itself.
//!
//! [`ask`] builds the messages and the schema of the response, [`read`] parses the response into a verdict,
//! and [`repair`] builds the one follow-up message after an unreadable response.
//!
//! **Invariant:** the instructions of a judge come from a rubric, a tenant's template or an evaluator's
//! config. No text of a trace stands outside the fence, not even the name of a tool or a document.

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
pub(crate) use rubric::JudgeOptions;
pub use rubric::{Level, Need, Prefers, Rubric};
pub use scale::{Labelled, Scale};
pub use section::Part;

#[cfg(test)]
mod tests;
