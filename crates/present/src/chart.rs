//! Charts made of characters: sparklines, and columns above an axis.
//!
//! Every chart begins at zero. A missing value is a blank cell, so that it does not read as zero.

use api::metrics::{Metric, MetricPoint};

use crate::glyphs::Glyphs;

/// Returns the number of points per column if at most `cols` columns are drawn.
pub fn per_column(points: usize, cols: usize) -> usize {
    points.div_ceil(cols.max(1)).max(1)
}

/// Combines points into the value of one column.
///
/// Counts and costs are summed; the error rate is weighted by the number of traces. Percentiles cannot be combined, so
/// the column shows the highest; for the rate of good feedback it shows the lowest.
pub fn combined(metric: Metric, points: &[MetricPoint]) -> Option<f64> {
    let values = || points.iter().filter_map(|point| point.values.get(metric));
    match metric {
        Metric::TotalCost | Metric::TraceCount => Some(values().sum()),
        Metric::LatencyP50 | Metric::LatencyP95 | Metric::LatencyP99 => values().reduce(f64::max),
        Metric::FeedbackGoodRate => values().reduce(f64::min),
        Metric::ErrorRate => {
            let weighed = points.iter().filter_map(|point| {
                #[expect(clippy::cast_precision_loss, reason = "no window has 2^53 traces")]
                let traces = point.values.trace_count as f64;
                Some((point.values.error_rate? * traces, traces))
            });
            let (failed, all) =
                weighed.fold((0.0, 0.0), |(failed, all), (some, traces)| (failed + some, all + traces));
            (all > 0.0).then(|| failed / all)
        }
    }
}

/// Returns the word for the choice that [`combined`] makes; none where the combination is exact.
pub const fn how_combined(metric: Metric) -> Option<&'static str> {
    match metric {
        Metric::LatencyP50 | Metric::LatencyP95 | Metric::LatencyP99 => Some("highest"),
        Metric::FeedbackGoodRate => Some("lowest"),
        Metric::ErrorRate | Metric::TotalCost | Metric::TraceCount => None,
    }
}

/// Returns a metric's values in at most `cols` columns.
pub fn series(metric: Metric, points: &[MetricPoint], cols: usize) -> Vec<Option<f64>> {
    points.chunks(per_column(points.len(), cols)).map(|chunk| combined(metric, chunk)).collect()
}

/// Returns a sparkline: one cell for each value.
pub fn spark(values: &[Option<f64>], glyphs: &Glyphs) -> String {
    spark_to(values, highest(values), glyphs)
}

/// Returns a sparkline whose highest cell stands for `top`.
pub fn spark_to(values: &[Option<f64>], top: f64, glyphs: &Glyphs) -> String {
    values.iter().map(|value| value.map_or(" ", |value| glyphs.ramp[level(value, top, 1)])).collect()
}

/// Returns columns as rows of text, from top to bottom, with one cell for each value. Columns end at `top`, the
/// end of the axis.
pub fn columns(values: &[Option<f64>], rows: usize, top: f64, glyphs: &Glyphs) -> Vec<String> {
    let heights: Vec<Option<usize>> =
        values.iter().map(|value| value.filter(|it| *it > 0.0).map(|it| level(it, top, rows) + 1)).collect();
    let cell = |height: Option<usize>, row: usize| {
        let within = height.unwrap_or(0).saturating_sub(8 * row).min(8);
        match within {
            0 => " ",
            // A cell is filled or empty, because marks of different density would not form a column.
            _ if glyphs.ascii => {
                if within >= 4 || row == 0 {
                    glyphs.bar
                } else {
                    " "
                }
            }
            _ => glyphs.ramp[within - 1],
        }
    };
    (0..rows).rev().map(|row| heights.iter().map(|height| cell(*height, row)).collect()).collect()
}

/// Returns the end of an axis: 1, 2, 4, 6, 8 or 10 times a power of ten, not less than the highest value.
pub fn axis_top(highest: f64) -> f64 {
    if !highest.is_finite() || highest <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(highest.log10().floor());
    // The smallest step that still holds the value, in spite of rounding.
    let steps = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= highest * 0.999_999).unwrap_or(power * 10.0)
}

/// Returns the highest value, or 0 without values.
pub fn highest(values: &[Option<f64>]) -> f64 {
    values.iter().flatten().copied().fold(0.0, f64::max)
}

/// Returns the height of a value in eighths of a cell, counted from 0, in a column of `rows` cells that
/// ends at `top`.
fn level(value: f64, top: f64, rows: usize) -> usize {
    let steps = rows.saturating_mul(8).max(1);
    let share = if top > 0.0 { (value / top).clamp(0.0, 1.0) } else { 0.0 };
    ((share * steps as f64).round() as usize).clamp(1, steps) - 1
}

#[cfg(test)]
mod tests {
    use api::{Timestamp, metrics::MetricValues};

    use super::*;

    fn point(traces: i64, errors: Option<f64>, p95: Option<f64>) -> MetricPoint {
        let values = MetricValues {
            trace_count: traces,
            error_rate: errors,
            latency_p95: p95,
            ..MetricValues::default()
        };
        MetricPoint { start: Timestamp::from_micros(0), values }
    }

    #[test]
    fn points_of_a_column_are_combined_by_metric() {
        let points = [point(10, Some(0.5), Some(7.0)), point(0, None, None), point(90, Some(0.0), Some(3.0))];
        assert_eq!(combined(Metric::TraceCount, &points), Some(100.0));
        assert_eq!(combined(Metric::ErrorRate, &points), Some(0.05));
        assert_eq!(combined(Metric::LatencyP95, &points), Some(7.0));
        assert_eq!(combined(Metric::LatencyP99, &points), None);
        assert_eq!(series(Metric::TraceCount, &points, 2), [Some(10.0), Some(90.0)]);
    }

    #[test]
    fn missing_value_is_a_blank_cell() {
        let values = [Some(0.0), None, Some(4.0), Some(8.0)];
        assert_eq!(spark(&values, &Glyphs::UNICODE), "▁ ▄█");
        assert_eq!(spark(&values, &Glyphs::ASCII), "_ =#");
        assert_eq!(spark(&[Some(0.0), None], &Glyphs::UNICODE), "▁ ");
    }

    #[test]
    fn columns_are_as_high_as_their_values() {
        let values = [Some(0.001), Some(6.0), None, Some(8.0), Some(90.0)];
        assert_eq!(columns(&values, 2, 8.0, &Glyphs::UNICODE), [" ▄ ██", "▁█ ██"]);
        assert_eq!(columns(&values, 2, 8.0, &Glyphs::ASCII), [" # ##", "## ##"]);
        assert_eq!(columns(&[Some(0.0)], 1, 1.0, &Glyphs::UNICODE), [" "]);
    }

    #[test]
    fn axis_ends_at_a_round_number() {
        for (highest, top) in
            [(0.0, 1.0), (0.3, 0.4), (1.0, 1.0), (6_700.0, 8_000.0), (21.0, 40.0), (0.024, 0.04)]
        {
            assert!((axis_top(highest) - top).abs() < top * 1e-9, "{highest}");
        }
        assert_eq!(axis_top(f64::NAN), 1.0);
    }
}
