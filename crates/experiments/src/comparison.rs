//! One-sided t-tests of the difference between two means.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::sample::Sample;

/// The figures of a t-test of whether a difference lies above a limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The mean of the candidate minus the mean of the baseline.
    pub effect: f64,
    /// The standard error of the effect.
    pub standard_error: f64,
    /// The degrees of freedom of the t-distribution.
    pub degrees_of_freedom: f64,
}

impl Comparison {
    /// Compares independent samples with unequal variances (Welch's t-test). None if a sample has fewer than two scores.
    pub fn welch(baseline: &Sample, candidate: &Sample) -> Option<Self> {
        let share = |it: &Sample| Some(it.variance()? / it.count());
        let (of_baseline, of_candidate) = (share(baseline)?, share(candidate)?);
        let variance = of_baseline + of_candidate;
        let smaller = |share: f64, it: &Sample| share * share / (it.count() - 1.0);
        let degrees =
            variance * variance / (smaller(of_baseline, baseline) + smaller(of_candidate, candidate));
        Some(Self {
            effect: candidate.mean()? - baseline.mean()?,
            standard_error: variance.sqrt(),
            // Not a number if all scores of both samples equal their means. The value does not matter then.
            degrees_of_freedom: if degrees.is_finite() { degrees } else { 1.0 },
        })
    }

    /// Compares scores of the same inputs (paired t-test). `differences` has the candidate's score minus the baseline's
    /// for each input. None with fewer than two inputs.
    pub fn paired(differences: &Sample) -> Option<Self> {
        Some(Self {
            effect: differences.mean()?,
            standard_error: (differences.variance()? / differences.count()).sqrt(),
            degrees_of_freedom: differences.count() - 1.0,
        })
    }

    /// Returns the probability of this effect, or a greater one, if the true effect is `limit`.
    pub fn p_value_above(&self, limit: f64) -> f64 {
        let distance = self.effect - limit;
        if self.standard_error == 0.0 {
            // All scores of an arm are equal: there is no sampling error.
            return if distance > 0.0 { 0.0 } else { 1.0 };
        }
        self.distribution().map_or(1.0, |it| it.sf(distance / self.standard_error))
    }

    /// Returns the limit above which the true effect lies with a probability of `1 - alpha`.
    pub fn lower_bound(&self, alpha: f64) -> f64 {
        let quantile = self.distribution().map_or(f64::INFINITY, |it| it.inverse_cdf(1.0 - alpha));
        if self.standard_error == 0.0 { self.effect } else { self.effect - quantile * self.standard_error }
    }

    fn distribution(&self) -> Option<StudentsT> {
        StudentsT::new(0.0, 1.0, self.degrees_of_freedom).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-5 * expected.abs(), "{found} instead of {expected}");
    }

    /// The expected figures are those of `scipy.stats.ttest_ind(equal_var=False, alternative="greater")`, scipy 1.17.1.
    #[test]
    fn welch_agrees_with_scipy() {
        let baseline =
            [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4];
        let candidate =
            [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 24.4];
        let comparison =
            Comparison::welch(&baseline.into_iter().collect(), &candidate.into_iter().collect()).unwrap();
        near(comparison.effect / comparison.standard_error, 2.852_954_870);
        near(comparison.degrees_of_freedom, 27.887_303_988);
        near(comparison.p_value_above(0.0), 0.004_035_969);
        near(comparison.lower_bound(0.05), 1.143_668_600);
    }

    /// The expected figure is that of `scipy.stats.ttest_1samp(alternative="greater")`, scipy 1.17.1.
    #[test]
    fn paired_test_agrees_with_scipy() {
        let differences: Sample = [0.1, -0.2, 0.3, 0.4, 0.05, 0.0].into_iter().collect();
        let comparison = Comparison::paired(&differences).unwrap();
        near(comparison.p_value_above(-0.05), 0.065_865_759);
    }

    #[test]
    fn equal_scores_have_no_sampling_error() {
        let constant = |score: f64| -> Sample { std::iter::repeat_n(score, 20).collect() };
        let better = Comparison::welch(&constant(0.5), &constant(0.75)).unwrap();
        assert_eq!((better.p_value_above(0.0), better.lower_bound(0.05)), (0.0, 0.25));
        let equal = Comparison::welch(&constant(0.5), &constant(0.5)).unwrap();
        assert_eq!((equal.p_value_above(0.0), equal.lower_bound(0.05)), (1.0, 0.0));
        let paired = Comparison::paired(&constant(0.0)).unwrap();
        assert_eq!((paired.p_value_above(0.0), paired.p_value_above(-0.1)), (1.0, 0.0));
    }

    #[test]
    fn fewer_than_two_scores_are_not_compared() {
        let (one, two): (Sample, Sample) = ([0.5].into_iter().collect(), [0.5, 0.6].into_iter().collect());
        assert_eq!(Comparison::welch(&one, &two), None);
        assert_eq!(Comparison::welch(&two, &one), None);
        assert_eq!(Comparison::paired(&one), None);
    }

    proptest! {
        /// The p-value is below alpha exactly when the lower bound lies above the limit.
        #[test]
        fn p_value_and_lower_bound_agree(
            baseline in proptest::collection::vec(0.0_f64..=1.0, 2..40),
            candidate in proptest::collection::vec(0.0_f64..=1.0, 2..40),
            alpha in 0.001_f64..0.5,
            limit in -0.5_f64..0.5,
        ) {
            let comparison =
                Comparison::welch(&baseline.into_iter().collect(), &candidate.into_iter().collect()).unwrap();
            let (p, bound) = (comparison.p_value_above(limit), comparison.lower_bound(alpha));
            prop_assert!((0.0..=1.0).contains(&p));
            prop_assume!((bound - limit).abs() > 1e-6);
            prop_assert_eq!(p < alpha, bound > limit, "{:?}: p {} bound {}", comparison, p, bound);
        }
    }
}
