//! Simulates experiments with a known effect, and counts how many candidates pass: of those that should fail, and
//! of those that should pass.
//!
//! The seeds are fixed, so the figures are too.

#![allow(clippy::unwrap_used)]

use experiments::{Decision, Requirements, Sample, Scores, Watch, decide, watch};
use fastrand::Rng;

/// Number of simulated experiments for each case.
const EXPERIMENT_COUNT: usize = 1_000;
/// Number of scores of each arm, and of each window after shipping.
const SCORES_PER_ARM: u64 = 100;
/// The error probability of a decision.
const TEST_ALPHA: f64 = 0.05;
/// The largest share that three standard errors allow for a true share of [`TEST_ALPHA`]: sqrt(0.05 * 0.95 / 1000) is 0.0069.
const MAX_FALSE_SHARE: f64 = TEST_ALPHA + 3.0 * 0.0069;

/// How scores are distributed between 0 and 1.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// The mean of a few uniform numbers: most scores lie near the mean.
    Bell,
    /// 0 or 1, as evaluators with two results give.
    Binary,
    /// Most scores are near 1, few are much lower.
    Skewed,
    /// Steps of a quarter, as judges with five grades give.
    Graded,
}

impl Shape {
    const ALL: [Self; 4] = [Self::Bell, Self::Binary, Self::Skewed, Self::Graded];

    /// Returns a score; `shift` changes the mean by that much.
    fn score(self, rng: &mut Rng, shift: f64) -> f64 {
        match self {
            Self::Bell => (0..4).map(|_| rng.f64()).sum::<f64>() / 8.0 + 0.25 + shift,
            Self::Binary => f64::from(u8::from(rng.f64() < 0.8 + shift)),
            Self::Skewed => 1.0 - rng.f64().powi(4) + shift,
            Self::Graded => {
                // Rounded to one of two steps at random, so that the mean changes by `shift` exactly.
                let scaled = (rng.f64() * 0.5 + 0.25 + shift) * 4.0;
                (scaled.floor() + f64::from(u8::from(rng.f64() < scaled.fract()))) / 4.0
            }
        }
    }

    /// Returns the standard deviation of the scores, estimated from many.
    fn deviation(self) -> f64 {
        let mut rng = Rng::with_seed(99);
        let sample: Sample = (0..100_000).map(|_| self.score(&mut rng, 0.0)).collect();
        sample.variance().unwrap().sqrt()
    }
}

/// Returns the share of experiments that pass when the candidate's true mean is higher by `effect`.
fn passed(shape: Shape, is_paired: bool, effect: f64, max_regression: f64, seed: u64) -> f64 {
    let mut rng = Rng::with_seed(seed);
    let requirements = Requirements { min_samples: SCORES_PER_ARM, alpha: TEST_ALPHA, max_regression };
    let count = (0..EXPERIMENT_COUNT)
        .filter(|_| {
            let mut arm = |shift: f64| -> Vec<f64> {
                (0..SCORES_PER_ARM).map(|_| shape.score(&mut rng, shift)).collect()
            };
            let (baseline, candidate) = (arm(0.0), arm(effect));
            let scores = if is_paired {
                Scores::Paired(baseline.iter().zip(&candidate).map(|(one, other)| other - one).collect())
            } else {
                Scores::Independent {
                    baseline: baseline.into_iter().collect(),
                    candidate: candidate.into_iter().collect(),
                }
            };
            matches!(decide(&requirements, &scores), Decision::Passed(_))
        })
        .count();
    count as f64 / EXPERIMENT_COUNT as f64
}

#[test]
fn candidates_without_an_effect_pass_at_most_with_the_probability_alpha() {
    for shape in Shape::ALL {
        for is_paired in [false, true] {
            let share = passed(shape, is_paired, 0.0, 0.0, 1);
            assert!(share <= MAX_FALSE_SHARE, "{shape:?}, paired: {is_paired}: {share}");
            assert!(share > 0.01, "{shape:?}, paired: {is_paired}: the test has lost its power: {share}");
        }
    }
}

#[test]
fn candidates_at_the_tolerated_regression_pass_at_most_with_the_probability_alpha() {
    for shape in Shape::ALL {
        let share = passed(shape, false, -0.1, 0.1, 2);
        assert!(share <= MAX_FALSE_SHARE, "{shape:?}: {share}");
    }
}

/// With 100 scores an arm, a one-sided test at 5 % finds an effect of 0.4 standard deviations with a probability of about
/// 88 %.
#[test]
fn candidates_with_the_stated_effect_pass_mostly() {
    for shape in [Shape::Bell, Shape::Skewed, Shape::Graded] {
        let share = passed(shape, false, 0.4 * shape.deviation(), 0.0, 3);
        assert!(share >= 0.8, "{shape:?}: {share}");
    }
    // From 80 % to 94 % good results: scores of 0 and 1 cannot be shifted.
    let share = passed(Shape::Binary, false, 0.14, 0.0, 3);
    assert!(share >= 0.8, "{share}");
}

#[test]
fn shipped_candidates_without_an_effect_are_rarely_found_to_have_regressed() {
    let mut rng = Rng::with_seed(4);
    for shape in Shape::ALL {
        let mut window =
            |shift: f64| -> Sample { (0..SCORES_PER_ARM).map(|_| shape.score(&mut rng, shift)).collect() };
        let mut alarms = 0;
        for _ in 0..EXPERIMENT_COUNT {
            let baseline = window(0.0);
            alarms += usize::from(
                (0..20).any(|it| watch(&baseline, &window(0.0), it, TEST_ALPHA) != Watch::NotRegressed),
            );
        }
        let share = alarms as f64 / EXPERIMENT_COUNT as f64;
        assert!(share <= MAX_FALSE_SHARE, "{shape:?}: {share} of the candidates in 20 windows");
    }
}

#[test]
fn shipped_candidates_that_become_worse_are_found() {
    let mut rng = Rng::with_seed(5);
    for shape in [Shape::Bell, Shape::Skewed, Shape::Graded] {
        let lower = -0.6 * shape.deviation();
        let mut window =
            |shift: f64| -> Sample { (0..SCORES_PER_ARM).map(|_| shape.score(&mut rng, shift)).collect() };
        let found = (0..EXPERIMENT_COUNT)
            .filter(|_| {
                let baseline = window(0.0);
                // The scores become worse in the fourth window.
                (3..6).any(|it| watch(&baseline, &window(lower), it, TEST_ALPHA) != Watch::NotRegressed)
            })
            .count();
        assert!(found >= EXPERIMENT_COUNT * 8 / 10, "{shape:?}: {found}");
    }
}
