//! Rubrics of the built-in LLM evaluators.

use schemars::JsonSchema;
use serde::Deserialize;

/// The options that every built-in LLM evaluator has.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct JudgeOptions {
    /// What the judge should mind as well: the rules of your application, terms, exceptions. It adds to the
    /// built-in instructions and cannot change the scale.
    #[schemars(length(min = 1, max = 4000))]
    pub rubric: Option<String>,
    /// Language of the reasoning, by name or code; default English.
    #[schemars(regex(pattern = r"^[A-Za-z][A-Za-z ()-]{1,39}$"))]
    pub language: Option<String>,
}

/// The instructions of a judge for one question.
#[derive(Debug)]
pub struct Rubric {
    /// The question, in one sentence.
    pub question: &'static str,
    /// The steps of the judgement, in order.
    pub steps: &'static [&'static str],
    /// The defects that lower the score.
    pub counts: &'static [&'static str],
    /// The properties that do not affect the score.
    pub ignores: &'static [&'static str],
    /// The anchors of the scale, best first.
    pub levels: &'static [Level],
    /// The parts that a trace must have; without them the evaluation fails with a reason.
    pub needs: &'static [TracePart],
    /// The parts that are shown if the trace has them.
    pub uses: &'static [TracePart],
    /// The preferred provider. If only the other provider is configured, that one judges.
    pub prefers: PreferredProvider,
}

/// An anchor of the scale.
#[derive(Debug)]
pub struct Level {
    /// The score, from 0.0 to 1.0.
    pub score: f64,
    /// The description of a text at this level.
    pub meaning: &'static str,
}

/// A part of a trace that a judge sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TracePart {
    /// The input.
    Input,
    /// The output.
    Output,
    /// The retrieved documents.
    Documents,
    /// The offered tools.
    Tools,
    /// The tool calls with arguments and results.
    Calls,
    /// Earlier exchanges of the session, or of the conversation in the input.
    Turns,
}

impl TracePart {
    /// Returns the name of the part's section and placeholder.
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

    /// Returns the part with this placeholder.
    pub fn of_word(word: &str) -> Option<Self> {
        const ALL: [TracePart; 6] = [
            TracePart::Input,
            TracePart::Output,
            TracePart::Documents,
            TracePart::Tools,
            TracePart::Calls,
            TracePart::Turns,
        ];
        ALL.into_iter().find(|it| it.word() == word)
    }
}

/// A judge provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreferredProvider {
    /// OpenAI.
    OpenAi,
    /// Anthropic.
    Anthropic,
}
