//! Anomalies: periods in which a metric of a project differs from its usual values.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Timestamp, enums::words};

words! {
    /// The side of the expected range on which the values are.
    AnomalyDirection {
        /// Above the expected range.
        Up = "up",
        /// Below the expected range.
        Down = "down",
    }
}

words! {
    /// The severity of an anomaly, which never falls.
    AnomalySeverity {
        /// A significant deviation.
        Low = "low",
        /// A deviation twice as strong, or one that lasts for three hours.
        Medium = "medium",
        /// A deviation four times as strong, or no traces at all.
        High = "high",
    }
}

words! {
    /// Whether an anomaly has ended.
    AnomalyStatus {
        /// The metric still deviates.
        Open = "open",
        /// The anomaly has ended.
        Closed = "closed",
    }
}

words! {
    /// The reason why an anomaly ended.
    AnomalyCloseReason {
        /// The metric returned to its expected range.
        Recovered = "recovered",
        /// The metric stayed at its new level for a day, which is the expected level from now on.
        NewNormal = "new_normal",
        /// The metric had no values for a day.
        NoData = "no_data",
        /// The detection stopped because the project was archived, or began again.
        DetectionStopped = "detection_stopped",
    }
}

/// A period in which a metric of a project differs significantly from its usual values.
///
/// Values have the unit of the metric: a rate between 0 and 1 for `error_rate`, milliseconds for `latency_p95`, the
/// mean score for `score:<metric_name>`, and the sum over one interval of 5, 15 or 60 minutes for `cost` (US
/// dollars), `tokens` and `volume` (traces).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Anomaly {
    /// Identifies the anomaly.
    pub id: Uuid,
    /// The project.
    pub project_id: Uuid,
    /// `error_rate`, `latency_p95`, `cost`, `tokens`, `volume`, or `score:` and the metric name of an evaluator.
    pub metric: String,
    /// The side of the expected range on which the values are.
    pub direction: AnomalyDirection,
    /// Highest severity so far.
    pub severity: AnomalySeverity,
    /// Whether the anomaly has ended.
    pub status: AnomalyStatus,
    /// The reason why it ended; null while it is open.
    pub close_reason: Option<AnomalyCloseReason>,
    /// The value with the highest score so far.
    pub observed: f64,
    /// The expected value at that time.
    pub expected: f64,
    /// Lower end of the expected range at that time.
    pub expected_low: f64,
    /// Upper end of the expected range at that time.
    pub expected_high: f64,
    /// Highest score so far: the deviation as a multiple of the usual spread.
    pub score: f64,
    /// Start of the first anomalous interval.
    pub window_start: Timestamp,
    /// End of the last anomalous interval; for an open anomaly, the one at the last change of the severity.
    pub window_end: Timestamp,
    /// Time at which it was detected.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// A page of anomalies, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AnomalyList {
    /// The anomalies.
    pub anomalies: Vec<Anomaly>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
