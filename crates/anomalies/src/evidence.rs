//! How far the values of a window are from their expectation, in units of the noise that is always present.

use crate::anomaly::Direction;
use crate::metric::{Family, MetricSettings};
use crate::window::{AssessedPoint, EXPECTATION_COUNT};

/// Relative standard deviation of counts that is assumed beyond the noise of counting.
const COUNT_PROCESS_NOISE: f64 = 0.1;

/// Sums over the newest intervals.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowSums {
    intervals: f64,
    samples: f64,
    weight: f64,
    value: f64,
    /// The interval that differs most from its expectation.
    peak: Option<AssessedPoint>,
    /// For each kind of expectation, the sum over the intervals.
    expected: [f64; EXPECTATION_COUNT],
}

/// Values in the unit of the metric: per interval for counts and sums.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ObservedRange {
    pub observed: f64,
    pub expected: f64,
    pub low: f64,
    pub high: f64,
}

/// The change of an expectation from one level to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LevelShift {
    /// Counts and proportions.
    Factor(f64),
    /// Means.
    Difference(f64),
}

impl WindowSums {
    /// Adds an interval.
    pub(crate) fn add(&mut self, point: &AssessedPoint, family: Family) {
        let difference = |it: &AssessedPoint| ((it.value - it.expected[1]) * it.weight).abs();
        if self.peak.is_none_or(|it| difference(point) > difference(&it)) {
            self.peak = Some(*point);
        }
        self.accumulate(point, family, 1.0);
    }

    /// Returns the sums without the interval that differs most.
    pub(crate) fn without_peak(mut self, family: Family) -> Self {
        if let Some(peak) = self.peak.take() {
            self.accumulate(&peak, family, -1.0);
        }
        self
    }

    fn accumulate(&mut self, point: &AssessedPoint, family: Family, sign: f64) {
        let (value, samples) = (f64::from(point.value), f64::from(point.samples) * sign);
        let factor = match family {
            Family::Count => sign,
            Family::Proportion => samples,
            Family::Mean | Family::LogMean => f64::from(point.weight) * sign,
        };
        self.intervals += sign;
        self.samples += samples;
        self.weight += factor;
        self.value += if family == Family::Proportion { value * sign } else { value * factor };
        for (sum, expected) in self.expected.iter_mut().zip(point.expected) {
            *sum += f64::from(expected) * factor;
        }
    }

    /// Returns the deviation from the nearest expectation; zero if they are on both sides of the value.
    ///
    /// `unit` is the size of one unit of difference between means.
    pub(crate) fn deviation(&self, family: Family, unit: f64) -> f64 {
        let deviations = self.expected.map(|it| self.deviation_from(it, family, unit));
        let (low, high) = min_and_max(deviations);
        if low > 0.0 {
            low
        } else if high < 0.0 {
            high
        } else {
            0.0
        }
    }

    fn deviation_from(&self, expected: f64, family: Family, unit: f64) -> f64 {
        match family {
            Family::Count => stabilized(self.value) - stabilized(expected),
            Family::Proportion => binomial_deviance(self.value, expected, self.samples),
            _ if self.weight <= 0.0 => 0.0,
            Family::Mean | Family::LogMean => (self.value - expected) / (self.weight.sqrt() * unit),
        }
    }

    /// Returns whether the deviation is at least `factor` times the smallest that is reported.
    pub(crate) fn has_effect(&self, settings: &MetricSettings, direction: Direction, factor: f64) -> bool {
        let relative = f64::from(settings.min_relative_effect) * factor;
        let absolute = f64::from(settings.min_absolute_effect) * factor;
        // A count that drops has few samples because it drops.
        let needs_samples = settings.family != Family::Count || direction == Direction::Up;
        if needs_samples && self.samples < f64::from(settings.min_samples) {
            return false;
        }
        let sign = if direction == Direction::Up { 1.0 } else { -1.0 };
        self.expected.iter().all(|&expected| {
            let difference = sign * (self.value - expected);
            match settings.family {
                Family::Count => difference >= relative * expected && difference >= absolute,
                Family::Proportion => {
                    difference >= relative * expected
                        && difference >= absolute * self.samples
                        && self.value >= f64::from(settings.min_failures) * factor
                }
                Family::Mean => difference >= absolute * self.weight,
                Family::LogMean => difference >= (1.0 + relative).ln() * self.weight,
            }
        })
    }

    /// Returns the sums with the expectation at another level.
    pub(crate) fn at_level(mut self, shift: LevelShift) -> Self {
        for expected in &mut self.expected {
            *expected = match shift {
                LevelShift::Factor(factor) => *expected * factor,
                LevelShift::Difference(difference) => *expected + difference * self.weight,
            };
        }
        self
    }

    /// Returns whether the window has any values.
    pub(crate) fn has_values(&self, family: Family) -> bool {
        family == Family::Count || self.weight > 0.0
    }

    /// Returns the value, the expectation and the range of deviations up to `deviation`, in the unit of the metric.
    pub(crate) fn range(&self, family: Family, unit: f64, up: f64, down: f64) -> ObservedRange {
        let divisor =
            if family == Family::Count { self.intervals } else { self.weight }.max(f64::MIN_POSITIVE);
        let middle = self.expected[1];
        let ends = match family {
            Family::Count => [-down, 0.0, up].map(|it| unstabilized(stabilized(middle) + it)),
            Family::Proportion => {
                let noise = (middle * (1.0 - middle / divisor)).max(0.0).sqrt();
                [-down, 0.0, up].map(|it| (middle + it * noise).clamp(0.0, divisor))
            }
            _ => [-down, 0.0, up].map(|it| middle + it * self.weight.sqrt() * unit),
        };
        let to_unit = |sum: f64| match family {
            Family::Count => sum / divisor * unit,
            Family::LogMean => (sum / divisor).exp(),
            _ => sum / divisor,
        };
        let expected = if family == Family::Count { middle } else { ends[1] };
        ObservedRange {
            observed: to_unit(self.value),
            expected: to_unit(expected),
            low: to_unit(ends[0]),
            high: to_unit(ends[2]),
        }
    }
}

fn min_and_max(values: [f64; EXPECTATION_COUNT]) -> (f64, f64) {
    values.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(it), high.max(it)))
}

/// Transforms a count so that its noise is about 1 at any size: a negative binomial count with
/// [`COUNT_PROCESS_NOISE`].
fn stabilized(count: f64) -> f64 {
    (COUNT_PROCESS_NOISE * (count.max(0.0) + 0.375).sqrt()).asinh() * 2.0 / COUNT_PROCESS_NOISE
}

/// Inverts [`stabilized`].
fn unstabilized(value: f64) -> f64 {
    let root = (value.max(0.0) * COUNT_PROCESS_NOISE / 2.0).sinh() / COUNT_PROCESS_NOISE;
    (root * root - 0.375).max(0.0)
}

/// Returns the signed root of the deviance of a number of failures, which is about standard normal.
fn binomial_deviance(failures: f64, expected: f64, samples: f64) -> f64 {
    if samples <= 0.0 || expected <= 0.0 {
        return 0.0;
    }
    let term = |found: f64, expected: f64| if found > 0.0 { found * (found / expected).ln() } else { 0.0 };
    let expected = expected.min(samples * 0.999);
    let deviance = 2.0 * (term(failures, expected) + term(samples - failures, samples - expected));
    deviance.max(0.0).sqrt().copysign(failures - expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_noise_is_one_at_any_size() {
        for count in [20.0_f64, 200.0, 20_000.0] {
            let noise = (count + (COUNT_PROCESS_NOISE * count).powi(2)).sqrt();
            let step = stabilized(count + noise) - stabilized(count);
            assert!((0.85..1.05).contains(&step), "{count}: {step}");
        }
        assert!((unstabilized(stabilized(321.0)) - 321.0).abs() < 1e-6);
    }

    #[test]
    fn one_failure_of_five_is_weak_evidence() {
        let weak = binomial_deviance(1.0, 0.05, 5.0);
        let strong = binomial_deviance(20.0, 1.0, 100.0);
        assert!(weak < 3.0 && strong > 8.0, "{weak} {strong}");
        assert!(binomial_deviance(0.0, 5.0, 100.0) < 0.0);
    }

    #[test]
    fn value_between_the_expectations_of_neighbouring_hours_does_not_deviate() {
        let mut sums = WindowSums::default();
        let expected = [100.0, 200.0, 400.0, 200.0, 200.0];
        sums.add(
            &AssessedPoint { start: 0, value: 150.0, samples: 150.0, weight: 1.0, expected },
            Family::Count,
        );
        assert_eq!(sums.deviation(Family::Count, 1.0), 0.0);
    }
}
