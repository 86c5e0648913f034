//! The kinds of metrics and how each is compared.

use serde::{Deserialize, Serialize};

/// A kind of metric; decides what a point's value means and which statistics apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// `value` is the number of failed traces among `samples` traces.
    ErrorRate,
    /// `value` is the 95th percentile of the latency in milliseconds.
    LatencyP95,
    /// `value` is the sum of the cost of `samples` traces, in any unit.
    Cost,
    /// `value` is the sum of the tokens of `samples` traces.
    Tokens,
    /// `value` is the number of traces; `samples` is ignored.
    Volume,
    /// `value` is the mean score of `samples` evaluations.
    Score,
    /// `value` is any number, in either direction; `samples` is ignored.
    Generic,
}

/// The directions in which a metric can be anomalous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Directions {
    /// Only values above the expected range.
    Up,
    /// Only values below the expected range.
    Down,
    /// Values on either side.
    Both,
}

/// How values of a metric are distributed around the expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Family {
    /// Counts, and sums of non-negative numbers, which are counted in units of a typical summand.
    Count,
    /// A number of failures among a number of samples.
    Proportion,
    /// Means or percentiles, compared by their difference.
    Mean,
    /// Percentiles of skewed quantities, compared by their ratio.
    LogMean,
}

/// Thresholds of a metric; [`MetricKind::settings`] returns the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricSettings {
    pub(crate) family: Family,
    /// Directions that are reported.
    pub directions: Directions,
    /// Smallest reported deviation, as a share of the expected value: 0.3 is 30 %.
    pub min_relative_effect: f32,
    /// Smallest reported deviation in the unit of the metric (counts: traces; error rate: 0.03 is three points).
    pub min_absolute_effect: f32,
    /// Minimum number of samples of a value that is compared.
    pub min_samples: f32,
    /// Minimum number of failures at which an error rate is reported.
    pub min_failures: f32,
    /// Days of history before the first anomaly.
    pub min_history_days: u16,
    /// Number of samples at which the noise of sampling equals the noise of the process.
    pub(crate) half_weight_samples: f32,
    /// Multiple of the usual spread at which an anomaly is opened, for intervals of 5 minutes; lower for longer
    /// intervals.
    pub open_score: f32,
}

impl MetricKind {
    /// Returns the default thresholds.
    pub fn settings(self) -> MetricSettings {
        let base = MetricSettings {
            family: Family::Count,
            directions: Directions::Up,
            min_relative_effect: 0.5,
            min_absolute_effect: 0.0,
            min_samples: 0.0,
            min_failures: 0.0,
            // The first weekend must be over.
            min_history_days: 8,
            half_weight_samples: 1.0,
            open_score: 4.8,
        };
        match self {
            Self::Volume => MetricSettings {
                directions: Directions::Both,
                min_relative_effect: 0.4,
                min_absolute_effect: 12.0,
                ..base
            },
            Self::Cost | Self::Tokens => MetricSettings { min_samples: 25.0, ..base },
            Self::ErrorRate => MetricSettings {
                family: Family::Proportion,
                min_relative_effect: 1.0,
                min_absolute_effect: 0.02,
                min_samples: 10.0,
                min_failures: 5.0,
                min_history_days: 2,
                ..base
            },
            Self::LatencyP95 => MetricSettings {
                family: Family::LogMean,
                min_relative_effect: 0.3,
                min_samples: 40.0,
                min_history_days: 2,
                half_weight_samples: 100.0,
                ..base
            },
            Self::Score => MetricSettings {
                family: Family::Mean,
                directions: Directions::Down,
                min_relative_effect: 0.0,
                min_absolute_effect: 0.05,
                min_samples: 10.0,
                min_history_days: 2,
                half_weight_samples: 100.0,
                ..base
            },
            Self::Generic => MetricSettings {
                family: Family::Mean,
                directions: Directions::Both,
                min_relative_effect: 0.0,
                min_absolute_effect: 0.0,
                min_samples: 0.0,
                min_history_days: 1,
                half_weight_samples: 0.0,
                ..base
            },
        }
    }
}
