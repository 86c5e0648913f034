//! Anomalies and how they change.

use serde::{Deserialize, Serialize};

/// The side of the expected range on which the values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Above the expected range.
    Up,
    /// Below the expected range.
    Down,
}

/// The severity of an anomaly; it can rise while the anomaly is open and never falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The score is below twice the score that opens an anomaly.
    Low,
    /// The score is at least twice the score that opens an anomaly, or the anomaly lasts for three hours.
    Medium,
    /// The score is at least four times the score that opens an anomaly, or the volume has dropped to nothing.
    High,
}

/// The reason why an anomaly ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseReason {
    /// The metric returned to its expected range.
    Recovered,
    /// The metric stayed at its new level for a day, which is the expected level from now on.
    NewNormal,
    /// The metric had no values for a day.
    NoData,
}

/// A period in which a metric differs significantly from its usual values.
///
/// Within a project and metric, `window_start` identifies an anomaly. Values have the unit of the metric: a rate
/// between 0 and 1 for the error rate, and the sum or count of one interval for volume, cost and tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Anomaly {
    /// Direction of the deviation.
    pub direction: Direction,
    /// Highest severity so far.
    pub severity: Severity,
    /// Value with the highest score so far.
    pub observed: f64,
    /// Expected value at that time.
    pub expected: f64,
    /// Lower end of the expected range at that time.
    pub expected_low: f64,
    /// Upper end of the expected range at that time.
    pub expected_high: f64,
    /// Highest score so far: the deviation as a multiple of the usual spread.
    pub score: f64,
    /// Start of the first anomalous interval, in microseconds since 1970.
    pub window_start: i64,
    /// End of the last anomalous interval, in microseconds since 1970.
    pub window_end: i64,
}

/// A change that the caller stores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnomalyChange {
    /// A new anomaly.
    Opened(Anomaly),
    /// An open anomaly whose severity has risen.
    Updated(Anomaly),
    /// An anomaly that has ended.
    Closed(Anomaly, CloseReason),
}
