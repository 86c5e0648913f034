//! Common parts of the two code evaluators of tool calls.

pub(crate) mod argument;
mod instant;
pub(crate) mod matching;
pub(crate) mod parameters;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    subject::{Reading, Subject},
    verdict::NotEvaluated,
};

/// Maximum number of names or calls that a config may expect.
pub(crate) const MAX_EXPECTED_CALLS: usize = 100;
/// Maximum length of the name of a tool or an argument in a message, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Returns a name for a message. Names may come from a trace, so a name with unusual characters is not
/// repeated.
pub(crate) fn shown_name(name: &str) -> &str {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.' | ':' | '/');
    if !name.is_empty() && name.len() <= MAX_NAME_CHARS && name.chars().all(plain) { name } else { "…" }
}

/// Joins at most ten sentences, and adds the number of omitted ones.
pub(crate) fn join_reasons(mut sentences: Vec<String>) -> String {
    if sentences.len() > 10 {
        let more = sentences.len() - 10;
        sentences.truncate(10);
        sentences.push(format!("{more} more"));
    }
    sentences.join("; ")
}

/// Checks that the trace shows an action of a model; only then is the absence of tool calls a choice.
///
/// # Errors
/// Fails when the trace shows no action.
pub(crate) fn require_action(subject: &Subject, reading: &Reading) -> Result<(), NotEvaluated> {
    let answered = reading.output().is_some_and(|it| !it.trim().is_empty());
    if answered || !subject.steps.is_empty() || !reading.calls().is_empty() {
        return Ok(());
    }
    Err(NotEvaluated::new(
        "the trace has neither an output nor spans, so the called tools are unknown: send \
         its spans, or the model's answer with its `tool_calls` as `output`",
    ))
}

/// Whether calls are compared in their order.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallOrder {
    #[default]
    Any,
    Same,
}

/// Whether calls that are not expected count as mistakes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExtraCalls {
    #[default]
    Refuse,
    Allow,
}
