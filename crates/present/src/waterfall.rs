//! Intervals of time as bars on a common scale.

use crate::format::latency;

/// Start and end of an interval in microseconds since 1970.
pub type Interval = (i64, i64);

/// The time that the bars share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeScale {
    /// The left edge, in microseconds since 1970.
    start: i64,
    /// From edge to edge, in microseconds; at least 1.
    length: i64,
}

impl TimeScale {
    /// Returns the scale from the first start to the last end; none without intervals.
    pub fn of(intervals: impl IntoIterator<Item = Interval>) -> Option<Self> {
        let (start, end) = intervals.into_iter().reduce(|one, it| (one.0.min(it.0), one.1.max(it.1)))?;
        Some(Self { start, length: end.saturating_sub(start).max(1) })
    }

    /// Returns the length in microseconds.
    pub const fn length(&self) -> i64 {
        self.length
    }

    /// Returns the first cell and the number of cells of an interval's bar on `cells` cells. A bar has at least
    /// one cell and never leaves the scale.
    pub fn bar(&self, (start, end): Interval, cells: usize) -> (usize, usize) {
        if cells == 0 {
            return (0, 0);
        }
        let cell_of = |time: i64| {
            let share = time.saturating_sub(self.start) as f64 / self.length as f64;
            (share.clamp(0.0, 1.0) * cells as f64) as usize
        };
        let first = cell_of(start).min(cells - 1);
        let last = cell_of(end).clamp(first + 1, cells);
        (first, last - first)
    }

    /// Returns the labels above the bars: the left edge, the middle if there is room, the right edge.
    pub fn ruler(&self, cells: usize) -> String {
        let at = |micros: i64| match micros {
            0 => "0s".to_owned(),
            _ if self.length < 1_000 => format!("{micros}us"),
            _ => latency(micros / 1_000),
        };
        let (left, middle, right) = (at(0), at(self.length / 2), at(self.length));
        if cells < left.len() + right.len() + 1 {
            return String::new();
        }
        let mut ruler = left;
        let centre = (cells / 2).saturating_sub(middle.len() / 2);
        if centre > ruler.len() && centre + middle.len() + right.len() < cells {
            ruler = format!("{ruler:<centre$}{middle}");
        }
        let room = cells - right.len();
        format!("{ruler:<room$}{right}")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bars_share_one_scale_and_have_at_least_a_cell() {
        let intervals = [(0, 10_000_000), (9_900_000, 9_900_001), (5_000_000, 5_000_100)];
        let scale = TimeScale::of(intervals).unwrap();
        assert_eq!(scale.bar(intervals[0], 40), (0, 40));
        assert_eq!(scale.bar(intervals[1], 40), (39, 1));
        assert_eq!(scale.bar(intervals[2], 40), (20, 1));
        assert_eq!(scale.bar(intervals[2], 0), (0, 0));
        assert_eq!(TimeScale::of([]), None);
    }

    #[test]
    fn extreme_times_stay_on_the_scale() {
        let intervals = [(5, i64::MIN), (6, i64::MAX), (i64::MIN, 7)];
        let scale = TimeScale::of(intervals).unwrap();
        for interval in intervals {
            let (first, cells) = scale.bar(interval, 20);
            assert!(cells >= 1 && first + cells <= 20);
        }
    }

    #[test]
    fn ruler_is_as_wide_as_the_bars() {
        let scale = TimeScale { start: 0, length: 30_000_000 };
        assert_eq!(scale.ruler(40).len(), 40);
        assert!(scale.ruler(40).starts_with("0s") && scale.ruler(40).ends_with("30.0s"));
        assert_eq!(scale.ruler(3), "");
    }
}
