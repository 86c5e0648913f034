//! What comes out of judging.

/// The judgement of one trace by one evaluator.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// From 0.0 to 1.0; 1.0 is good.
    pub score: f64,
    /// In words, for people. It never repeats personal data or a secret that was found.
    pub reasoning: String,
    /// The level's own label, on an evaluator with labelled levels; else the label follows from
    /// the score and the threshold.
    pub label: Option<String>,
}

impl Verdict {
    /// Returns a verdict whose label follows from its score. `score` is brought into 0.0 to 1.0.
    pub fn new(score: f64, reasoning: impl Into<String>) -> Self {
        Self { score: score.clamp(0.0, 1.0), reasoning: reasoning.into(), label: None }
    }

    /// All is well.
    pub fn good(reasoning: impl Into<String>) -> Self {
        Self::new(1.0, reasoning)
    }

    /// Nothing is.
    pub fn bad(reasoning: impl Into<String>) -> Self {
        Self::new(0.0, reasoning)
    }
}

/// Why there is no verdict. The evaluation ends `failed` with this sentence, which says what is
/// missing and what to do; it is never a score.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unjudged(pub String);

impl Unjudged {
    /// Returns the reason as a sentence.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}
