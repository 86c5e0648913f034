//! Rolling metrics of traces, and metrics of a project.

use serde::{Deserialize, Serialize};

use crate::{Timestamp, enums::words};

words! {
    /// A period that ends now.
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
    /// Returns the length in microseconds.
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
    /// Length of the buckets of a series; buckets begin at whole minutes, hours or days in UTC.
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
    /// Returns the length in microseconds.
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
        /// Sum of the costs in US dollars.
        TotalCost = "total_cost",
        /// Number of traces.
        TraceCount = "trace_count",
        /// Fraction of the traces with feedback whose newest feedback is `good`.
        FeedbackGoodRate = "feedback_good_rate",
    }
}

/// All metrics over a set of traces. Without traces, count and cost are 0 and the others are null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MetricValues {
    /// Fraction of the traces that ended in error, 0 to 1.
    pub error_rate: Option<f64>,
    /// Median latency in milliseconds, within 1 %, of the traces that have one.
    pub latency_p50: Option<f64>,
    /// 95th percentile of the latency in milliseconds, within 1 %.
    pub latency_p95: Option<f64>,
    /// 99th percentile of the latency in milliseconds, within 1 %.
    pub latency_p99: Option<f64>,
    /// Sum of the costs in US dollars.
    pub total_cost: f64,
    /// Number of traces.
    pub trace_count: i64,
    /// Fraction of the traces with feedback whose newest feedback is `good`, 0 to 1.
    pub feedback_good_rate: Option<f64>,
}

impl MetricValues {
    /// Returns the value of a metric.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::ErrorRate => self.error_rate,
            Metric::LatencyP50 => self.latency_p50,
            Metric::LatencyP95 => self.latency_p95,
            Metric::LatencyP99 => self.latency_p99,
            Metric::TotalCost => Some(self.total_cost),
            #[expect(clippy::cast_precision_loss, reason = "a tenant has fewer than 2^53 traces")]
            Metric::TraceCount => Some(self.trace_count as f64),
            Metric::FeedbackGoodRate => self.feedback_good_rate,
        }
    }
}

/// The metrics of one bucket of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MetricPoint {
    /// Start of the bucket; the first one may begin before `from`, but counts only traces after `from`.
    pub start: Timestamp,
    /// The metrics.
    #[serde(flatten)]
    pub values: MetricValues,
}

/// The metrics of the traces with the same model, name or tag value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MetricGroup {
    /// The model, name or tag value; null for traces without one.
    pub key: Option<String>,
    /// The metrics.
    pub metrics: MetricValues,
    /// With `interval`: the buckets in which the group has traces, oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Vec<MetricPoint>>,
}

/// Response of `GET /v1/metrics`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Metrics {
    /// Start of the period.
    pub from: Timestamp,
    /// End of the period.
    pub to: Timestamp,
    /// The metrics over the whole period.
    pub metrics: MetricValues,
    /// With `interval`: all buckets of the period, oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Vec<MetricPoint>>,
    /// With `group_by`: the groups with the most traces, at most 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<MetricGroup>>,
    /// With `group_by`: whether there are more groups than `groups` contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups_truncated: Option<bool>,
    /// Set when the groups cover more traces than one request may read: the groups count only traces
    /// that started at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups_from: Option<Timestamp>,
}

words! {
    /// A metric of a project.
    ProjectMetric {
        /// Number of traces on which a policy reached its `max_retry_depth` and was escalated.
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

impl ProjectWindow {
    /// Returns the length in microseconds.
    pub const fn micros(self) -> i64 {
        match self {
            Self::Week => 7 * 86_400_000_000,
            Self::Month => 30 * 86_400_000_000,
        }
    }
}

/// Response of `GET /v1/projects/{id}/metrics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ProjectMetricValue {
    /// The metric.
    pub metric: ProjectMetric,
    /// The count; 0 when nothing matches.
    pub value: i64,
    /// The period that it covers, up to now.
    pub window: ProjectWindow,
}
