//! What a judge is told to look at.

use serde_json::{Value, json};

/// Returns the options that every built-in judge has beside `threshold`: JSON Schema of the config.
pub fn options() -> Value {
    json!({
        "type": "object",
        "properties": {
            "rubric": {
                "type": "string", "minLength": 1, "maxLength": 4000,
                "description": "What the judge should mind as well: the rules of your application, terms, exceptions. \
                                It adds to the built-in instructions and can't change the scale.",
            },
            "language": {
                "type": "string", "pattern": "^[A-Za-z][A-Za-z ()-]{1,39}$",
                "description": "Language of the reasoning, by name or code; default English.",
            },
        },
    })
}

/// A judge's instructions, written for one question.
#[derive(Debug)]
pub struct Rubric {
    /// The question, in one sentence.
    pub question: &'static str,
    /// How to come to an answer, in order.
    pub steps: &'static [&'static str],
    /// What counts against the text.
    pub counts: &'static [&'static str],
    /// What does not.
    pub ignores: &'static [&'static str],
    /// Anchors of the scale, best first.
    pub levels: &'static [Level],
    /// What a trace must have; without it the evaluation fails with a reason.
    pub needs: &'static [Need],
    /// What is shown as well when the trace has it.
    pub uses: &'static [Need],
    /// The provider whose models judge this best; when only the other is there, that one judges.
    pub prefers: Prefers,
}

/// An anchor of the scale.
#[derive(Debug)]
pub struct Level {
    /// From 0.0 to 1.0.
    pub score: f64,
    /// What a text at this level is like.
    pub meaning: &'static str,
}

/// A part of a trace that a judge is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// What went in.
    Input,
    /// What came out.
    Output,
    /// What was retrieved.
    Documents,
    /// The tools that were offered.
    Tools,
    /// The tools that were called, with arguments and results.
    Calls,
    /// Earlier exchanges of the session, or of the conversation in the input.
    Turns,
}

impl Need {
    /// Returns the name of its section and of its placeholder.
    pub fn word(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::Documents => "documents",
            Self::Tools => "tools",
            Self::Calls => "calls",
            Self::Turns => "turns",
        }
    }

    /// By the name of its placeholder.
    pub fn of_word(word: &str) -> Option<Self> {
        const ALL: [Need; 6] =
            [Need::Input, Need::Output, Need::Documents, Need::Tools, Need::Calls, Need::Turns];
        ALL.into_iter().find(|it| it.word() == word)
    }
}

/// A judge provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefers {
    /// Models of OpenAI.
    OpenAi,
    /// Models of Anthropic.
    Anthropic,
}
