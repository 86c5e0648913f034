//! Count, mean and variance of scores.

use serde::{Deserialize, Serialize};

/// Sums up scores without storing them (Welford's algorithm).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    count: u64,
    mean: f64,
    /// Sum of the squared differences from the mean.
    squares: f64,
}

impl Sample {
    /// Adds a score.
    pub fn add(&mut self, score: f64) {
        self.count += 1;
        let before = score - self.mean;
        self.mean += before / self.count();
        self.squares += before * (score - self.mean);
    }

    /// Returns the number of scores.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there is no score.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the mean; none without scores.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then_some(self.mean)
    }

    /// Returns the variance (with Bessel's correction); none with fewer than two scores.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / (self.count() - 1.0))
    }

    /// Returns the number of scores as a float, which is exact below 2^53.
    pub(crate) fn count(&self) -> f64 {
        self.count as f64
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<T: IntoIterator<Item = f64>>(scores: T) -> Self {
        let mut sample = Self::default();
        scores.into_iter().for_each(|it| sample.add(it));
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_variance_are_those_of_the_scores() {
        let sample: Sample = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().collect();
        assert_eq!((sample.len(), sample.mean()), (8, Some(5.0)));
        assert!((sample.variance().unwrap() - 32.0 / 7.0).abs() < 1e-12);
    }

    #[test]
    fn few_scores_have_no_variance() {
        assert_eq!((Sample::default().mean(), Sample::default().variance()), (None, None));
        let one: Sample = [0.5].into_iter().collect();
        assert_eq!((one.mean(), one.variance()), (Some(0.5), None));
    }
}
