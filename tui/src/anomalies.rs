//! Anomalies on several screens: values in the unit of their metric, marks, and requests.

use api::{
    Timestamp,
    anomaly::{Anomaly, AnomalyCloseReason, AnomalyDirection, AnomalyList, AnomalySeverity, AnomalyStatus},
    client::{
        Call,
        calls::{self, AnomalyFilter, Page},
    },
    metrics::Metric,
};
use uuid::Uuid;

use crate::theme::{Glyphs, Tone};
use present::format::{count, elapsed, latency, money, thousands};

/// Returns the call for the first page of anomalies, of a project or of all of them.
pub fn first_page(project_id: Option<Uuid>, limit: u32) -> Call<AnomalyList> {
    let filter = AnomalyFilter { project_id, ..AnomalyFilter::default() };
    calls::anomalies(&filter, &Page { limit: Some(limit), cursor: None })
}

/// Returns the anomaly metric of a charted metric; none if no detector reads it.
pub const fn detected_metric(metric: Metric) -> Option<&'static str> {
    match metric {
        Metric::ErrorRate => Some("error_rate"),
        Metric::LatencyP95 => Some("latency_p95"),
        Metric::TotalCost => Some("cost"),
        Metric::TraceCount => Some("volume"),
        Metric::LatencyP50 | Metric::LatencyP99 | Metric::FeedbackGoodRate => None,
    }
}

/// Formats a value of an anomaly metric with its unit.
pub fn metric_value(metric: &str, value: f64) -> String {
    match metric {
        _ if !value.is_finite() => "?".to_owned(),
        "error_rate" => format!("{:.1} %", value * 100.0),
        "latency_p95" => latency(value.round() as i64),
        "cost" => money(value),
        "tokens" => count(value.round() as i64),
        "volume" => thousands(value.round() as i64),
        _ => format!("{value:.2}"),
    }
}

/// Returns the expected range: `2.90s to 3.30s`.
pub fn expected_range(it: &Anomaly) -> String {
    let value = |bound| metric_value(&it.metric, bound);
    format!("{} to {}", value(it.expected_low), value(it.expected_high))
}

/// Returns the mark of an anomaly and its tone. A closed one is dimmed.
pub fn severity_mark(it: &Anomaly, glyphs: &Glyphs) -> (&'static str, Tone) {
    let (mark, tone) = match it.severity {
        AnomalySeverity::Low | AnomalySeverity::Medium => (glyphs.worse, Tone::Warn),
        AnomalySeverity::High => (glyphs.bad, Tone::Bad),
    };
    (mark, if it.status == AnomalyStatus::Closed { Tone::Dim } else { tone })
}

/// Returns the glyph of the direction.
pub const fn direction_glyph(it: &Anomaly, glyphs: &Glyphs) -> &'static str {
    match it.direction {
        AnomalyDirection::Up => glyphs.rise,
        AnomalyDirection::Down => glyphs.fall,
    }
}

/// Returns the end of an anomaly. An open one lasts until now: its last interval is not reported.
pub fn end_of(it: &Anomaly, now: Timestamp) -> Timestamp {
    if it.status == AnomalyStatus::Open { now.max(it.window_end) } else { it.window_end }
}

/// Returns the status with the duration: `open 2h20m`, or `closed after 15m, recovered`.
pub fn status_text(it: &Anomaly, now: Timestamp) -> String {
    let lasted = duration_text((end_of(it, now).micros() - it.window_start.micros()) / 1_000_000);
    let reason = match it.close_reason {
        None => "",
        Some(AnomalyCloseReason::Recovered) => ", recovered",
        Some(AnomalyCloseReason::NewNormal) => ", new normal",
        Some(AnomalyCloseReason::NoData) => ", no data",
        Some(AnomalyCloseReason::DetectionStopped) => ", project archived",
    };
    match it.status {
        AnomalyStatus::Open => format!("open {lasted}"),
        AnomalyStatus::Closed => format!("closed after {lasted}{reason}"),
    }
}

/// Formats seconds as `15m`, or as `2h20m` from one hour. An interval has at least five minutes.
fn duration_text(seconds: i64) -> String {
    if seconds < 3_600 { format!("{}m", seconds.max(0) / 60) } else { elapsed(seconds) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{BASE_MICROS, anomaly};

    #[test]
    fn anomaly_values_have_the_unit_of_their_metric() {
        for (metric, value, text) in [
            ("error_rate", 0.079, "7.9 %"),
            ("latency_p95", 8_200.4, "8.20s"),
            ("cost", 9.8, "$9.8000"),
            ("tokens", 1_234_567.0, "1.2M"),
            ("volume", 4_711.0, "4,711"),
            ("score:faithfulness", 0.614, "0.61"),
            ("cost", f64::NAN, "?"),
        ] {
            assert_eq!(metric_value(metric, value), text, "{metric}");
        }
        assert_eq!(expected_range(&anomaly(1, "latency_p95")), "2.90s to 3.30s");
    }

    #[test]
    fn open_anomaly_lasts_until_now() {
        let now = Timestamp::from_micros(BASE_MICROS);
        let mut it = anomaly(1, "cost");
        assert_eq!(status_text(&it, now), "open 1h00m");
        it.status = AnomalyStatus::Closed;
        it.close_reason = Some(AnomalyCloseReason::NewNormal);
        assert_eq!(status_text(&it, now), "closed after 15m, new normal");
    }
}
