//! The comparison of a shipped candidate with its former baseline.

use crate::{comparison::Comparison, sample::Sample};

/// The result of [`watch`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Watch {
    /// The scores are not significantly lower than the baseline's, or too few to tell.
    NotRegressed,
    /// The scores are significantly lower. The effect is negative.
    Regressed(Comparison),
}

/// Compares a window of a shipped candidate's scores with the baseline's (Welch's t-test).
///
/// Windows do not overlap and are numbered from 0. Window `k` is tested at `alpha / ((k + 1) * (k + 2))`. The sum of
/// these levels is `alpha`, which therefore bounds the probability that a candidate without an effect ever counts as
/// regressed, however long it is watched.
pub fn watch(baseline: &Sample, window: &Sample, number: u32, alpha: f64) -> Watch {
    let number = f64::from(number);
    let alpha = alpha / ((number + 1.0) * (number + 2.0));
    let is_lower = |it: &Comparison| {
        let reversed = Comparison { effect: -it.effect, ..*it };
        reversed.p_value_above(0.0) < alpha
    };
    match Comparison::welch(baseline, window).filter(is_lower) {
        Some(comparison) => Watch::Regressed(comparison),
        None => Watch::NotRegressed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(mean: f64) -> Sample {
        (0..40).map(|it| mean + f64::from(it % 5 - 2) / 10.0).collect()
    }

    #[test]
    fn clearly_lower_scores_are_a_regression() {
        let Watch::Regressed(comparison) = watch(&around(0.8), &around(0.5), 0, 0.05) else { panic!() };
        assert!((comparison.effect + 0.3).abs() < 1e-9);
    }

    #[test]
    fn equal_higher_and_few_scores_are_not_a_regression() {
        for window in [around(0.8), around(0.9), Sample::default(), [0.0].into_iter().collect()] {
            assert_eq!(watch(&around(0.8), &window, 0, 0.05), Watch::NotRegressed);
        }
    }

    #[test]
    fn later_windows_need_stronger_evidence() {
        let (baseline, lower) = (around(0.8), around(0.73));
        assert!(matches!(watch(&baseline, &lower, 0, 0.05), Watch::Regressed(_)));
        assert_eq!(watch(&baseline, &lower, 100, 0.05), Watch::NotRegressed);
    }
}
