//! The text of a trace that an evaluator judges.

use serde_json::{Map, Value, json};

use crate::{definition::ConfigProblem, subject::Subject, verdict::Unjudged};

/// Maximum size of a text for evaluators that read the whole text, in bytes.
const MAX_TEXT_BYTES: usize = crate::pattern::MAX_TEXT_BYTES;

/// A text of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The output.
    #[default]
    Output,
    /// The input.
    Input,
}

impl Target {
    /// Parses the option `target`.
    ///
    /// # Errors
    /// When the value is another word.
    pub fn of(config: &Map<String, Value>) -> Result<Self, ConfigProblem> {
        match config.get("target").map(Value::as_str) {
            None | Some(Some("output")) => Ok(Self::Output),
            Some(Some("input")) => Ok(Self::Input),
            Some(_) => Err(ConfigProblem::new("target", "must be output or input")),
        }
    }

    /// Returns the part of a config's schema for this option.
    pub fn schema() -> Value {
        json!({
            "enum": ["output", "input"], "default": "output",
            "description": "Which text of the trace is judged."
        })
    }

    /// Returns the text, for evaluators that read all of it.
    ///
    /// # Errors
    /// When the trace has no text, or the text is too long.
    pub fn bounded_text(self, subject: &Subject) -> Result<&str, Unjudged> {
        let text = self.text(subject)?;
        if text.len() <= MAX_TEXT_BYTES {
            return Ok(text);
        }
        let reason = format!(
            "the text is longer than {} MiB, the most that this evaluator reads: judge a span with a shorter one",
            MAX_TEXT_BYTES / 1024 / 1024
        );
        Err(Unjudged::new(reason))
    }

    /// Returns the text.
    ///
    /// # Errors
    /// When the trace has no such text.
    pub fn text(self, subject: &Subject) -> Result<&str, Unjudged> {
        let (text, name) = match self {
            Self::Output => (&subject.output, "output"),
            Self::Input => (&subject.input, "input"),
        };
        text.as_deref().ok_or_else(|| {
            Unjudged::new(format!("the trace has no {name}: send `{name}`, or judge a span that has one"))
        })
    }
}
