//! The last intervals with their expectations.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Lengths in intervals of the windows that are compared with their expectation.
pub(crate) const WINDOW_LENGTHS: [usize; 4] = [1, 3, 12, 72];
/// Number of expectations of an interval.
pub(crate) const EXPECTATION_COUNT: usize = 5;
/// Longest window.
pub(crate) const MAX_WINDOW_LENGTH: usize = 72;

/// An interval and its expectation, on the scale of the metric's family.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AssessedPoint {
    pub start: i64,
    pub value: f32,
    /// Number of samples; zero if the interval has no value.
    pub samples: f32,
    /// Weight in sums over a window.
    pub weight: f32,
    /// The expectations that [`Baseline::expect`](crate::baseline::Baseline::expect) returns.
    pub expected: [f32; EXPECTATION_COUNT],
}

/// The most recent intervals, at most [`MAX_WINDOW_LENGTH`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecentPoints {
    points: VecDeque<AssessedPoint>,
}

impl RecentPoints {
    /// Adds the newest interval.
    pub(crate) fn push(&mut self, point: AssessedPoint) {
        if self.points.len() == MAX_WINDOW_LENGTH {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }

    /// Removes all intervals.
    pub(crate) fn clear(&mut self) {
        self.points.clear();
    }

    /// Returns the intervals, newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &AssessedPoint> {
        self.points.iter().rev()
    }
}
