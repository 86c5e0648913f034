//! The points of a series that deviate from the others.
//!
//! A point is unusual when it lies further from the median than [`MIN_DEVIATIONS`] times the spread, which
//! is the median absolute deviation scaled to that of a normal distribution. The console works
//! this out from the points that it shows, and says so; it knows nothing of weekdays or trends.

use api::metrics::{Metric, MetricPoint};

use present::chart::combined;

/// Spreads between the median and a point that is unusual.
const MIN_DEVIATIONS: f64 = 5.0;
/// The factor from a median absolute deviation to a standard deviation.
const NORMAL_SCALE: f64 = 1.482_6;
/// Fewer values than these have no typical one.
const MIN_POINTS: usize = 10;
/// Percentiles and rates of fewer traces than these say little.
const FEWEST_TRACES: f64 = 20.0;

/// For each column, the median of the others if it is far from that.
pub fn unusual(metric: Metric, columns: &[&[MetricPoint]]) -> Vec<Option<f64>> {
    let sums = matches!(metric, Metric::TotalCost | Metric::TraceCount);
    let last = columns.len().saturating_sub(1);
    let judged = |(at, points): (usize, &&[MetricPoint])| {
        // The first column began before the time shown, and the last one is not over.
        let whole = if sums {
            at > 0 && at < last
        } else {
            combined(Metric::TraceCount, points).is_some_and(|traces| traces >= FEWEST_TRACES)
        };
        combined(metric, points).filter(|_| whole)
    };
    let values: Vec<Option<f64>> = columns.iter().enumerate().map(judged).collect();
    let Some((median, reach)) = usual(metric, &values) else { return vec![None; values.len()] };
    let far = |value: &Option<f64>| value.filter(|value| (value - median).abs() > reach).map(|_| median);
    values.iter().map(far).collect()
}

/// The median of some values, and how far from it is still usual; nothing if they are too few.
fn usual(metric: Metric, values: &[Option<f64>]) -> Option<(f64, f64)> {
    let mut sorted: Vec<f64> = values.iter().flatten().copied().collect();
    if sorted.len() < MIN_POINTS {
        return None;
    }
    let middle = median(&mut sorted)?;
    let mut deviations: Vec<f64> = sorted.iter().map(|value| (value - middle).abs()).collect();
    let spread = median(&mut deviations)? * NORMAL_SCALE;
    Some((middle, (MIN_DEVIATIONS * spread).max(least(metric, middle))))
}

/// Returns the smallest deviation that is marked, however even the series is.
fn least(metric: Metric, median: f64) -> f64 {
    match metric {
        Metric::ErrorRate | Metric::FeedbackGoodRate => 0.05,
        Metric::LatencyP50 | Metric::LatencyP95 | Metric::LatencyP99 => (median * 0.25).max(50.0),
        Metric::TotalCost => (median * 0.5).max(0.01),
        Metric::TraceCount => (median * 0.5).max(10.0),
    }
}

/// The median; the values are sorted afterwards.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(*values.get(middle - 1)?, upper) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::{Timestamp, metrics::MetricValues};

    use super::*;

    fn check(metric: Metric, values: &[f64], far: &[usize]) {
        let values: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
        let (median, reach) = usual(metric, &values).unwrap();
        let outside = |at: &usize| values[*at].is_some_and(|value| (value - median).abs() > reach);
        assert_eq!((0..values.len()).filter(outside).collect::<Vec<_>>(), far);
    }

    #[test]
    fn values_far_from_the_median_are_marked() {
        let mut values = vec![3_000.0, 3_100.0, 2_900.0, 3_050.0, 2_950.0, 3_020.0];
        values.extend([3_080.0, 2_980.0, 3_010.0, 8_200.0, 3_000.0, 2_990.0]);
        check(Metric::LatencyP95, &values, &[9]);
    }

    #[test]
    fn even_series_marks_large_deviations_only() {
        let mut values = vec![0.0; 20];
        values[4] = 0.03;
        values[7] = 0.4;
        check(Metric::ErrorRate, &values, &[7]);
    }

    #[test]
    fn few_values_have_no_typical_one() {
        assert_eq!(usual(Metric::ErrorRate, &[Some(0.1); 9]), None);
        let mut gaps = vec![None; 100];
        gaps.extend([Some(0.1); 9]);
        assert_eq!(usual(Metric::ErrorRate, &gaps), None);
    }

    #[test]
    fn percentiles_of_a_few_traces_and_sums_of_parts_are_not_judged() {
        let point = |traces, p95: f64| {
            let values =
                MetricValues { trace_count: traces, latency_p95: Some(p95), ..MetricValues::default() };
            MetricPoint { start: Timestamp::from_micros(0), values }
        };
        let mut points = vec![point(100, 3_000.0); 20];
        points[4] = point(3, 60_000.0);
        points[9] = point(900, 60_000.0);
        points[19] = point(1, 3_000.0);
        let columns: Vec<&[MetricPoint]> = points.chunks(1).collect();
        let far = |metric| {
            let unusual = unusual(metric, &columns);
            (0..20).filter(|at| unusual[*at].is_some()).collect::<Vec<_>>()
        };
        assert_eq!(far(Metric::LatencyP95), [9]);
        assert_eq!(far(Metric::TraceCount), [4, 9], "the last column is not over");
    }
}
