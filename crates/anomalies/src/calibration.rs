//! The usual size of deviations: counts of past deviations in logarithmic buckets.

use serde::{Deserialize, Serialize};

use crate::anomaly::Direction;

/// Buckets of each power of two.
const BUCKETS_PER_OCTAVE: f32 = 4.0;
/// The power of two at which the first bucket ends.
const FIRST_OCTAVE: f32 = -8.0;
/// Minimum number of deviations that a spread is computed from.
const MIN_DEVIATIONS: f32 = 24.0;
/// Minimum number of deviations at which the tail of their distribution is approximately known.
const MIN_TAIL_DEVIATIONS: f32 = 60.0;
/// Number of buckets: deviations up to two to the power of 24.
const BUCKET_COUNT: usize = 128;
/// Quantiles of the deviations in a direction, and their values in a normal distribution.
const TAIL_QUANTILES: [(f32, f32); 3] = [(0.5, 0.6745), (0.99, 2.4), (0.999, 3.3)];

/// The bucket of a deviation: positive above the expectation, negative below it, zero without a deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SignedBucket(i16);

impl SignedBucket {
    /// Returns the bucket of a deviation.
    pub(crate) fn of(deviation: f32) -> Self {
        if deviation == 0.0 {
            return Self(0);
        }
        let position = (deviation.abs().log2() - FIRST_OCTAVE) * BUCKETS_PER_OCTAVE;
        let index = (position.max(0.0) as i16).min(BUCKET_COUNT as i16 - 1) + 1;
        Self(if deviation > 0.0 { index } else { -index })
    }
}

/// The deviations of the past, in one unit and for windows of one length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Calibration {
    up: Vec<f32>,
    down: Vec<f32>,
    total: f32,
    spread_up: f32,
    spread_down: f32,
}

impl Calibration {
    pub(crate) fn new() -> Self {
        Self {
            up: vec![0.0; BUCKET_COUNT],
            down: vec![0.0; BUCKET_COUNT],
            total: 0.0,
            spread_up: 0.0,
            spread_down: 0.0,
        }
    }

    /// Counts a deviation by its bucket. Beyond `memory` deviations, the weight of earlier ones is halved.
    pub(crate) fn add(&mut self, bucket: SignedBucket, memory: f32) {
        if self.total >= memory {
            for count in self.up.iter_mut().chain(&mut self.down) {
                *count /= 2.0;
            }
            self.total /= 2.0;
        }
        self.total += 1.0;
        match bucket.0 {
            it if it > 0 => self.up[usize::from(it.unsigned_abs()) - 1] += 1.0,
            it if it < 0 => self.down[usize::from(it.unsigned_abs()) - 1] += 1.0,
            _ => (),
        }
    }

    /// Recomputes the spreads, which are at least `floor`. The deviations are those of windows of `length` intervals.
    pub(crate) fn update_spreads(&mut self, floor: f32, length: usize) {
        // Few deviations say little about the tail of their distribution, and windows that overlap say less.
        let uncertainty = 1.0 + MIN_TAIL_DEVIATIONS.max(8.0 * length as f32) / (self.total + 1.0);
        self.spread_up = self.spread_of(&self.up).max(floor) * uncertainty;
        self.spread_down = self.spread_of(&self.down).max(floor) * uncertainty;
    }

    /// Returns whether enough deviations are counted.
    pub(crate) fn is_mature(&self) -> bool {
        self.total >= MIN_DEVIATIONS
    }

    /// Returns the usual size of deviations in a direction.
    pub(crate) fn spread(&self, direction: Direction) -> f32 {
        match direction {
            Direction::Up => self.spread_up,
            Direction::Down => self.spread_down,
        }
    }

    fn spread_of(&self, side: &[f32]) -> f32 {
        let count: f32 = side.iter().sum();
        let tails = TAIL_QUANTILES.iter().map(|&(quantile, normal)| {
            // The median counts the deviations of one direction, the other quantiles those of both. The "+
            // 1" ignores the largest deviation, which may be an exception.
            let upper = if quantile > 0.5 { (1.0 - quantile) * self.total + 1.0 } else { 0.5 * count };
            upper_quantile(side, upper) / normal
        });
        tails.fold(0.0, f32::max)
    }
}

/// Returns the value that `count` of the deviations exceed.
fn upper_quantile(side: &[f32], count: f32) -> f32 {
    let mut above = 0.0;
    for (index, &weight) in side.iter().enumerate().rev() {
        if weight > 0.0 && above + weight > count {
            // Interpolates within the bucket.
            let share = 1.0 - ((count - above) / weight).clamp(0.0, 1.0);
            return ((index as f32 + share) / BUCKETS_PER_OCTAVE + FIRST_OCTAVE).exp2();
        }
        above += weight;
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_that_is_heavier_in_one_direction_widens_that_direction() {
        let mut calibration = Calibration::new();
        for index in 0..1000_u16 {
            let size = f32::from(index % 10) / 5.0;
            calibration.add(SignedBucket::of(if index % 2 == 0 { size } else { -size }), 8000.0);
            if index % 50 == 0 {
                calibration.add(SignedBucket::of(20.0), 8000.0);
            }
        }
        calibration.update_spreads(0.0, 1);
        assert!(calibration.spread(Direction::Up) > 5.0);
        assert!(calibration.spread(Direction::Down) < 2.5);
    }

    #[test]
    fn quantile_is_within_a_bucket_of_the_value() {
        let mut side = vec![0.0; BUCKET_COUNT];
        for value in [1.0_f32, 2.0, 4.0, 8.0] {
            side[SignedBucket::of(value).0 as usize - 1] += 1.0;
        }
        let found = upper_quantile(&side, 0.5);
        assert!((8.0..9.6).contains(&found), "{found}");
        let found = upper_quantile(&side, 1.5);
        assert!((4.0..4.8).contains(&found), "{found}");
    }
}
