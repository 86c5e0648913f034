//! The decision about an experiment.

use serde::{Deserialize, Serialize};

use crate::{comparison::Comparison, sample::Sample};

/// What an experiment requires of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requirements {
    /// Number of scores of each arm at which the experiment is decided.
    pub min_samples: u64,
    /// The probability with which a candidate passes whose true effect is `-max_regression`.
    pub alpha: f64,
    /// By how much the mean of the candidate may be lower than the baseline's. With 0 it must be higher.
    pub max_regression: f64,
}

/// The scores of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scores {
    /// The arms have different inputs.
    Independent {
        /// The scores of the baseline.
        baseline: Sample,
        /// The scores of the candidate.
        candidate: Sample,
    },
    /// Both arms have the same inputs: the candidate's score minus the baseline's for each.
    Paired(Sample),
}

/// The result of [`decide`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// An arm has too few scores.
    TooFewScores,
    /// The lower bound of the effect lies above `-max_regression`.
    Passed(Comparison),
    /// The lower bound of the effect does not lie above `-max_regression`.
    Failed(Comparison),
}

impl Scores {
    /// Returns the number of scores of the smaller arm.
    pub fn len(&self) -> u64 {
        match self {
            Self::Independent { baseline, candidate } => baseline.len().min(candidate.len()),
            Self::Paired(differences) => differences.len(),
        }
    }

    /// Whether an arm has no score.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn comparison(&self) -> Option<Comparison> {
        match self {
            Self::Independent { baseline, candidate } => Comparison::welch(baseline, candidate),
            Self::Paired(differences) => Comparison::paired(differences),
        }
    }
}

/// Decides an experiment by a one-sided t-test: Welch's for independent scores, otherwise paired.
///
/// The error probability is that of one decision. A caller that asked again after more scores would let more candidates
/// without an effect pass, so the first decision is final.
pub fn decide(requirements: &Requirements, scores: &Scores) -> Decision {
    if scores.len() < requirements.min_samples {
        return Decision::TooFewScores;
    }
    match scores.comparison() {
        None => Decision::TooFewScores,
        Some(it) if it.lower_bound(requirements.alpha) > -requirements.max_regression => Decision::Passed(it),
        Some(it) => Decision::Failed(it),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUIREMENTS: Requirements = Requirements { min_samples: 4, alpha: 0.05, max_regression: 0.0 };

    fn independent(baseline: &[f64], candidate: &[f64]) -> Scores {
        let sample = |scores: &[f64]| scores.iter().copied().collect();
        Scores::Independent { baseline: sample(baseline), candidate: sample(candidate) }
    }

    #[test]
    fn experiment_is_decided_when_both_arms_have_enough_scores() {
        let (few, enough) = ([0.1, 0.2, 0.1], [0.8, 0.9, 0.8, 0.9]);
        for scores in [independent(&few, &enough), independent(&enough, &few)] {
            assert_eq!(decide(&REQUIREMENTS, &scores), Decision::TooFewScores);
        }
        let one = Requirements { min_samples: 0, ..REQUIREMENTS };
        assert_eq!(decide(&one, &independent(&[0.1], &[0.9])), Decision::TooFewScores, "no variance");
    }

    #[test]
    fn candidate_passes_if_it_is_better_beyond_the_sampling_error() {
        let baseline = [0.4, 0.5, 0.6, 0.5, 0.45, 0.55];
        let better = baseline.map(|it| it + 0.3);
        let slightly_better = baseline.map(|it| it + 0.01);
        let passes = |scores: &Scores, requirements: &Requirements| {
            matches!(decide(requirements, scores), Decision::Passed(_))
        };
        assert!(passes(&independent(&baseline, &better), &REQUIREMENTS));
        assert!(!passes(&independent(&baseline, &slightly_better), &REQUIREMENTS));
        // The same inputs: the small difference has no sampling error.
        let differences = Scores::Paired(std::iter::repeat_n(0.01, 6).collect());
        assert!(passes(&differences, &REQUIREMENTS));
    }

    #[test]
    fn equal_candidate_passes_only_with_a_tolerance() {
        let scores: Vec<f64> = (0..100).map(|it| f64::from(it % 10) / 10.0).collect();
        let equal = independent(&scores, &scores);
        assert!(matches!(decide(&REQUIREMENTS, &equal), Decision::Failed(_)));
        let tolerant = Requirements { max_regression: 0.1, ..REQUIREMENTS };
        assert!(matches!(decide(&tolerant, &equal), Decision::Passed(_)));
    }
}
