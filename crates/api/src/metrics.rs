//! Rolling metrics of traces, and metrics of a project.

use serde::{Deserialize, Serialize};

use crate::{Timestamp, enums::words};

words! {
    /// A stretch of time that ends now.
    Window {
        /// 60 minutes.
        Hour = "1h",
        /// 24 hours.
        Day = "24h",
        /// 7 days.
        Week = "7d",
        /// 30 days.
        Month = "30d",
    }
}

impl Window {
    /// Its length in microseconds.
    pub const fn micros(self) -> i64 {
        const HOUR: i64 = 3_600_000_000;
        match self {
            Self::Hour => HOUR,
            Self::Day => 24 * HOUR,
            Self::Week => 7 * 24 * HOUR,
            Self::Month => 30 * 24 * HOUR,
        }
    }
}

words! {
    /// Length of the stretches of a series; each begins at a whole one, in UTC.
    Interval {
        /// 60 seconds.
        Minute = "minute",
        /// 60 minutes.
        Hour = "hour",
        /// A calendar day.
        Day = "day",
    }
}

impl Interval {
    /// Its length in microseconds.
    pub const fn micros(self) -> i64 {
        match self {
            Self::Minute => 60_000_000,
            Self::Hour => 3_600_000_000,
            Self::Day => 86_400_000_000,
        }
    }
}

words! {
    /// A metric of traces.
    Metric {
        /// Fraction of the traces that ended in error.
        ErrorRate = "error_rate",
        /// Median latency in milliseconds.
        LatencyP50 = "latency_p50",
        /// 95th percentile of the latency in milliseconds.
        LatencyP95 = "latency_p95",
        /// 99th percentile of the latency in milliseconds.
        LatencyP99 = "latency_p99",
        /// US dollars.
        TotalCost = "total_cost",
        /// Number of traces.
        TraceCount = "trace_count",
        /// Fraction of the traces with feedback whose newest feedback is `good`.
        FeedbackGoodRate = "feedback_good_rate",
    }
}

/// All metrics over a set of traces. Without traces the count and the cost are 0 and the rest
/// is null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MetricValues {
    /// Fraction of the traces that ended in error, 0 to 1.
    pub error_rate: Option<f64>,
    /// Median latency in milliseconds, within 1 %, of the traces that have one.
    pub latency_p50: Option<f64>,
    /// 95th percentile, likewise.
    pub latency_p95: Option<f64>,
    /// 99th percentile, likewise.
    pub latency_p99: Option<f64>,
    /// US dollars.
    pub total_cost: f64,
    /// Number of traces.
    pub trace_count: i64,
    /// Fraction of the traces with feedback whose newest feedback is `good`, 0 to 1.
    pub feedback_good_rate: Option<f64>,
}

impl MetricValues {
    /// One of them.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::ErrorRate => self.error_rate,
            Metric::LatencyP50 => self.latency_p50,
            Metric::LatencyP95 => self.latency_p95,
            Metric::LatencyP99 => self.latency_p99,
            Metric::TotalCost => Some(self.total_cost),
            #[expect(clippy::cast_precision_loss, reason = "nobody has 2^53 traces")]
            Metric::TraceCount => Some(self.trace_count as f64),
            Metric::FeedbackGoodRate => self.feedback_good_rate,
        }
    }
}

/// The metrics of one stretch of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MetricPoint {
    /// When the stretch begins; the first one may begin before `from`, and counts from there.
    pub start: Timestamp,
    /// The metrics.
    #[serde(flatten)]
    pub values: MetricValues,
}

/// The metrics of the traces that have something in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MetricGroup {
    /// The model, the name or the tag's value; null for traces without one.
    pub key: Option<String>,
    /// The metrics.
    pub metrics: MetricValues,
    /// Given with `interval`: stretches in which the group has traces, oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Vec<MetricPoint>>,
}

/// Answer of `GET /v1/metrics`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Metrics {
    /// Traces that started then or later.
    pub from: Timestamp,
    /// Traces that started then or earlier.
    pub to: Timestamp,
    /// Over all of them.
    pub metrics: MetricValues,
    /// Given with `interval`: every stretch of the time asked for, oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Vec<MetricPoint>>,
    /// Given with `group_by`: the largest groups by number of traces, at most 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<MetricGroup>>,
    /// Given with `group_by`: there are groups that `groups` does not show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups_truncated: Option<bool>,
    /// Given when groups had to be read from more traces than one request may read: they count
    /// only traces that started then or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups_from: Option<Timestamp>,
}

words! {
    /// A metric of a project.
    ProjectMetric {
        /// Traces on which a policy reached its `max_retry_depth` and was escalated.
        RetryCapHit = "retry_cap_hit",
    }
}

words! {
    /// Windows of the metrics of a project.
    ProjectWindow {
        /// 7 days.
        Week = "7d",
        /// 30 days.
        Month = "30d",
    }
}

/// Answer of `GET /v1/projects/{id}/metrics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ProjectMetricValue {
    /// Which one.
    pub metric: ProjectMetric,
    /// A count; 0 when there is nothing to count.
    pub value: i64,
    /// Over which time, up to now.
    pub window: ProjectWindow,
}
