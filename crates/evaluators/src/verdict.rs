//! Results of evaluators.

/// The judgement of one trace by one evaluator.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The score, from 0.0 to 1.0; 1.0 is good.
    pub score: f64,
    /// The explanation for users. It never repeats personal data or a secret.
    pub reasoning: String,
    /// The label of the level, on a scale with labelled levels; otherwise the label follows from the score
    /// and the threshold.
    pub label: Option<String>,
}

impl Verdict {
    /// Creates a verdict whose label follows from its score. `score` is clamped to 0.0 to 1.0.
    pub fn new(score: f64, reasoning: impl Into<String>) -> Self {
        Self { score: score.clamp(0.0, 1.0), reasoning: reasoning.into(), label: None }
    }

    /// Creates a verdict with the score 1.0.
    pub fn good(reasoning: impl Into<String>) -> Self {
        Self::new(1.0, reasoning)
    }

    /// Creates a verdict with the score 0.0.
    pub fn bad(reasoning: impl Into<String>) -> Self {
        Self::new(0.0, reasoning)
    }
}

/// The reason why there is no verdict. The evaluation gets the status `failed` with this sentence, which names
/// the missing part and the remedy. An evaluation without a verdict never has a score.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unjudged(pub String);

impl Unjudged {
    /// Creates a reason from a sentence.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}
