//! Results of evaluators.

pub use api::eval::Verdict;

/// The result of a code evaluator: a score, which becomes a [`Verdict`] by a [`Threshold`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measurement {
    /// The score, from 0.0 to 1.0; 1.0 is good.
    pub score: f64,
    /// The explanation for users. It never repeats personal data or a secret.
    pub reasoning: String,
}

impl Measurement {
    /// Creates a measurement. `score` is clamped to 0.0 to 1.0.
    pub(crate) fn new(score: f64, reasoning: impl Into<String>) -> Self {
        Self { score: score.clamp(0.0, 1.0), reasoning: reasoning.into() }
    }

    /// Creates a measurement with the score 1.0.
    pub(crate) fn good(reasoning: impl Into<String>) -> Self {
        Self::new(1.0, reasoning)
    }

    /// Creates a measurement with the score 0.0.
    pub(crate) fn bad(reasoning: impl Into<String>) -> Self {
        Self::new(0.0, reasoning)
    }

    /// Creates the measurement of a value that must not exceed a limit; both are texts with their units.
    pub(crate) fn of_limit(is_within: bool, value: &str, limit: &str) -> Self {
        match is_within {
            true => Self::good(format!("{value} is within the limit of {limit}")),
            false => Self::bad(format!("{value} is over the limit of {limit}")),
        }
    }

    /// Returns the verdict with this label.
    pub(crate) fn into_verdict(self, label: &str) -> Verdict {
        Verdict { score: self.score, label: label.to_owned(), reasoning: self.reasoning }
    }
}

/// The reason why a trace cannot be evaluated. The evaluation gets the status `failed` with this sentence, which
/// names the missing part and the remedy. An evaluation without a verdict never has a score.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotEvaluated {
    /// The reason, as a sentence.
    pub reason: String,
}

impl NotEvaluated {
    /// Creates the error from its reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

/// The lowest score with the label `pass`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold(f64);

impl Default for Threshold {
    fn default() -> Self {
        Self(Self::DEFAULT_SCORE)
    }
}

impl Threshold {
    /// The threshold of a config that sets none.
    pub(crate) const DEFAULT_SCORE: f64 = 0.7;
    /// Width of the range below the threshold with the label `warn`.
    const WARN_WIDTH: f64 = 0.2;
    /// Tolerance of comparisons with a bound: sums of tenths may differ slightly from 0.7.
    const SCORE_TOLERANCE: f64 = 1e-9;

    /// Creates the threshold of a config, which may set none.
    pub fn new(score: Option<f64>) -> Self {
        score.map_or_else(Self::default, Self)
    }

    /// Returns the label of a score.
    pub fn label(self, score: f64) -> &'static str {
        if score >= self.0 - Self::SCORE_TOLERANCE {
            "pass"
        } else if score >= self.0 - Self::WARN_WIDTH - Self::SCORE_TOLERANCE {
            "warn"
        } else {
            "fail"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_of_score_follows_threshold() {
        let label = |score: f64, threshold: Option<f64>| Threshold::new(threshold).label(score);
        for (score, word) in
            [(1.0, "pass"), (0.7, "pass"), (0.69, "warn"), (0.5, "warn"), (0.49, "fail"), (0.0, "fail")]
        {
            assert_eq!(label(score, None), word, "{score}");
        }
        assert_eq!(label(0.1 + 0.2, Some(0.3)), "pass");
        assert_eq!(label(0.7 - 0.1 - 0.1, None), "warn");
        assert_eq!(
            (label(1.0, Some(1.0)), label(0.8, Some(1.0)), label(0.7, Some(1.0))),
            ("pass", "warn", "fail")
        );
        assert_eq!(label(0.0, Some(0.0)), "pass");
    }
}
