//! The change of a metric since the previous window.

use api::metrics::Metric;

use crate::theme::Glyphs;
use present::{format, format::thousands};

/// The assessment of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// As before, or better.
    Fine,
    /// Noticeably worse.
    Worse,
    /// Much worse.
    Bad,
}

/// A change as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricChange {
    /// Arrow and difference.
    pub text: String,
    /// The assessment.
    pub mark: Mark,
}

/// Returns the change of a metric: rates in percentage points, the number of traces in percent,
/// other metrics in their unit. Returns none if a value is missing.
pub fn change(
    metric: Metric,
    now: Option<f64>,
    before: Option<f64>,
    glyphs: &Glyphs,
) -> Option<MetricChange> {
    let (now, before) = (now?, before?);
    let difference = now - before;
    let size = difference.abs();
    let text = match metric {
        Metric::ErrorRate | Metric::FeedbackGoodRate => format!("{:.1}", size * 100.0),
        Metric::TraceCount if before == 0.0 => thousands(size.round() as i64),
        Metric::TraceCount => format!("{} %", format::count((size / before * 100.0).round() as i64)),
        _ => format::metric(metric, size),
    };
    // A difference that is rounded to zero has no direction.
    let nothing = !text.contains(|c: char| ('1'..='9').contains(&c));
    let text = match (nothing, difference > 0.0) {
        (true, _) => glyphs.none.to_owned(),
        (false, true) => format!("{} +{text}", glyphs.rise),
        (false, false) => format!("{} -{text}", glyphs.fall),
    };
    Some(MetricChange { text, mark: if nothing { Mark::Fine } else { mark(metric, now, before) } })
}

/// Assesses a change. The number of traces has no assessment, because it does not measure quality.
fn mark(metric: Metric, now: f64, before: f64) -> Mark {
    let judged = |worse: bool, bad: bool| match (worse, bad) {
        (_, true) => Mark::Bad,
        (true, false) => Mark::Worse,
        (false, false) => Mark::Fine,
    };
    match metric {
        Metric::TraceCount => Mark::Fine,
        Metric::ErrorRate => judged(now - before >= 0.01, now - before >= 0.05),
        Metric::FeedbackGoodRate => judged(before - now >= 0.05, before - now >= 0.15),
        _ if before == 0.0 => Mark::Fine,
        Metric::TotalCost => judged(now >= before * 1.5, now >= before * 3.0),
        Metric::LatencyP50 | Metric::LatencyP95 | Metric::LatencyP99 => {
            judged(now >= before * 1.2, now >= before * 2.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(metric: Metric, now: f64, before: f64, text: &str, mark: Mark) {
        let found = change(metric, Some(now), Some(before), &Glyphs::ASCII);
        assert_eq!(found, Some(MetricChange { text: text.to_owned(), mark }));
    }

    #[test]
    fn each_metric_differs_in_its_own_unit() {
        check(Metric::ErrorRate, 0.024, 0.013, "^ +1.1", Mark::Worse);
        check(Metric::LatencyP95, 6_700.0, 3_800.0, "^ +2.90s", Mark::Worse);
        check(Metric::LatencyP99, 30_000.0, 9_000.0, "^ +21.0s", Mark::Bad);
        check(Metric::LatencyP50, 1_810.0, 1_830.0, "v -20ms", Mark::Fine);
        check(Metric::TotalCost, 41.07, 40.27, "^ +$0.8000", Mark::Fine);
        check(Metric::TraceCount, 103.0, 100.0, "^ +3 %", Mark::Fine);
        check(Metric::TraceCount, 7.0, 0.0, "^ +7", Mark::Fine);
        check(Metric::FeedbackGoodRate, 0.7, 0.9, "v -20.0", Mark::Bad);
    }

    #[test]
    fn equal_values_show_no_arrow() {
        check(Metric::ErrorRate, 0.020_01, 0.02, "-", Mark::Fine);
        check(Metric::TraceCount, 0.0, 0.0, "-", Mark::Fine);
        assert_eq!(change(Metric::LatencyP50, Some(1.0), None, &Glyphs::ASCII), None);
    }
}
