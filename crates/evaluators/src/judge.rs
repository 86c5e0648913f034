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

pub use ask::{JudgeRequest, MAX_SHOWN_CHARS, ask};
pub use fence::Token;
pub use instructions::Instructions;
pub use reply::{UnreadableResponse, read, repair};
pub(crate) use rubric::JudgeOptions;
pub use rubric::{Level, Need, PreferredProvider, Rubric};
pub use scale::{Scale, ScaleLevel};
pub use section::PromptPart;

#[cfg(test)]
mod tests;
