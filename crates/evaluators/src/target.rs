//! The text of a trace that an evaluator reads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{subject::Subject, verdict::NotEvaluated};

/// Maximum size of a text for evaluators that read the whole text, in bytes.
const MAX_TEXT_BYTES: usize = crate::pattern::MAX_TEXT_BYTES;

/// A text of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(description = "Which text of the trace is evaluated.")]
pub(crate) enum Target {
    /// The output.
    #[default]
    Output,
    /// The input.
    Input,
}

impl Target {
    /// Returns the text, for evaluators that read all of it.
    ///
    /// # Errors
    /// Fails when the trace has no text, or the text is too long.
    pub(crate) fn bounded_text(self, subject: &Subject) -> Result<&str, NotEvaluated> {
        let text = self.text(subject)?;
        if text.len() <= MAX_TEXT_BYTES {
            return Ok(text);
        }
        Err(NotEvaluated::new(format!(
            "the text is longer than {} MiB, the maximum of this evaluator: evaluate a span with a shorter text",
            MAX_TEXT_BYTES / 1024 / 1024
        )))
    }

    /// Returns the text.
    ///
    /// # Errors
    /// Fails when the trace has no such text.
    pub(crate) fn text(self, subject: &Subject) -> Result<&str, NotEvaluated> {
        let (text, name) = match self {
            Self::Output => (&subject.output, "output"),
            Self::Input => (&subject.input, "input"),
        };
        text.as_deref().ok_or_else(|| {
            NotEvaluated::new(format!(
                "the trace has no {name}: send `{name}`, or evaluate a span that has one"
            ))
        })
    }
}
