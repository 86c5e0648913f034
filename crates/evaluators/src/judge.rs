//! Requests to a judge and the parser of its responses: rubrics, the fence around trace data, the shape of a
//! response. The server makes the call itself.
//!
//! [`build_request`] builds the messages and the schema of the response, [`parse_response`] parses the response into a verdict,
//! and [`build_repair_message`] builds the one follow-up message after an unreadable response.
//!
//! **Invariant:** the instructions of a judge come from a rubric, a tenant's template or an evaluator's config. No
//! text of a trace is outside the fence, not even the name of a tool or a document.

mod fence;
mod instructions;
mod reply;
mod request;
mod rubric;
mod scale;
mod section;

pub use fence::Token;
pub use instructions::Instructions;
pub use reply::{UnreadableResponse, build_repair_message, parse_response};
pub use request::{JudgeRequest, MAX_SHOWN_CHARS, build_request};
pub(crate) use rubric::JudgeOptions;
pub use rubric::{Level, PreferredProvider, Rubric, TracePart};
pub use scale::{Scale, ScaleLevel};
pub use section::PromptPart;

#[cfg(test)]
mod tests;
