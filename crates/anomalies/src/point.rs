//! The aggregate of a metric over one interval.

use serde::{Deserialize, Serialize};

/// Microseconds of a minute.
pub(crate) const MINUTE: i64 = 60_000_000;
/// Microseconds of an hour.
pub(crate) const HOUR: i64 = 60 * MINUTE;

/// The aggregate of a metric over one interval.
///
/// The meaning of `value` depends on the [`MetricKind`](crate::MetricKind).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Start of the interval in microseconds since 1970, UTC; a multiple of the detector's interval.
    pub start: i64,
    /// Value of the metric. Not a number means that the interval has no value.
    pub value: f64,
    /// Number of traces (or evaluations) that the value was computed from.
    pub samples: u64,
}

/// Returns the interval in microseconds that suits a project with this many traces a day.
///
/// Five minutes if an interval has 10 traces on average, a quarter of an hour if it has 5, otherwise an hour. A caller that
/// changes the interval of a project creates a new detector and replays the last four weeks.
pub fn interval_for(traces_per_day: f64) -> i64 {
    match traces_per_day {
        it if it >= 2_880.0 => 5 * MINUTE,
        it if it >= 480.0 => 15 * MINUTE,
        _ => HOUR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_projects_get_long_intervals() {
        assert_eq!(interval_for(100_000.0), 5 * MINUTE);
        assert_eq!(interval_for(1_000.0), 15 * MINUTE);
        assert_eq!(interval_for(72.0), HOUR);
        assert_eq!(interval_for(0.0), HOUR);
    }
}
