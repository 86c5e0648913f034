//! Failures and failure clusters.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{FailureType, Timestamp, enums::words, failure_rule::FiredRule};

/// A failing span, or a remediation regression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Failure {
    /// Identifies the failure.
    pub id: Uuid,
    /// The project of the trace.
    pub project_id: Uuid,
    /// The trace.
    pub trace_id: Uuid,
    /// The span; null for an error of the trace itself.
    pub span_id: Option<Uuid>,
    /// The name of the span, or of the trace.
    pub span_name: String,
    /// The failure type.
    #[serde(rename = "type")]
    pub failure_type: FailureType,
    /// The error message, cut to 2,000 characters.
    pub message: String,
    /// The model of the span.
    pub model: Option<String>,
    /// The failure cluster.
    pub cluster_id: Uuid,
    /// Time at which the failing span was stored.
    pub created_at: Timestamp,
}

/// A page of failures, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailureList {
    /// The failures.
    pub failures: Vec<Failure>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

words! {
    /// The status of a failure cluster.
    ClusterStatus {
        /// Needs attention.
        Open = "open",
        /// Solved; it reopens when such a failure occurs again.
        Resolved = "resolved",
        /// Ignored: its failures are counted and fire no failure rule.
        Muted = "muted",
    }
}

/// Failures of the same type and cause, counted together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailureCluster {
    /// Identifies the cluster.
    pub id: Uuid,
    /// The project of its failures.
    pub project_id: Uuid,
    /// The failure type.
    pub failure_type: FailureType,
    /// The status.
    pub status: ClusterStatus,
    /// The failure template: the message with `<*>` in place of its variable parts.
    pub signature: String,
    /// The first sentence of the signature.
    pub title: String,
    /// The name of the failing spans, with `<*>` in place of its variable parts.
    pub span_name: String,
    /// Number of failures so far, including those of deleted traces.
    pub count: i64,
    /// Number of traces with such failures, including deleted ones.
    pub trace_count: i64,
    /// Time of the first failure.
    pub first_seen: Timestamp,
    /// Time of the newest failure.
    pub last_seen: Timestamp,
    /// Time at which it was resolved; null unless it is resolved.
    pub resolved_at: Option<Timestamp>,
    /// Traces with such failures that still exist: the first one, then the latest ones, oldest first.
    pub sample_trace_ids: Vec<Uuid>,
    /// The models of its failures.
    pub models: Vec<String>,
    /// Failures per hour, without gaps, up to the current hour: of the last 24 hours in lists, of the last 7 days
    /// otherwise.
    pub trend: Vec<TrendPoint>,
    /// The failures of the samples; absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Vec<Failure>>,
}

/// The failures of an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TrendPoint {
    /// Start of the hour.
    pub start: Timestamp,
    /// Number of failures.
    pub count: i64,
}

/// A page of failure clusters, by their newest failures.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailureClusterList {
    /// The clusters.
    pub clusters: Vec<FailureCluster>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// Body of `PATCH /v1/failures/clusters/{id}`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailureClusterChange {
    /// The new status. A string, so that an unknown word is a validation error (422).
    #[cfg_attr(feature = "schema", schema(value_type = ClusterStatus))]
    pub status: String,
}

/// The filters of `GET /v1/failures`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureFilter {
    /// Only failures of this project.
    pub project_id: Option<Uuid>,
    /// Only failures of this type.
    pub failure_type: Option<FailureType>,
    /// Only failures of this cluster.
    pub cluster_id: Option<Uuid>,
    /// Only failures of this trace.
    pub trace_id: Option<Uuid>,
    /// Only failures of this model.
    pub model: Option<String>,
    /// Created at this time or later.
    pub from: Option<Timestamp>,
    /// Created at this time or earlier.
    pub to: Option<Timestamp>,
}

/// The filters of `GET /v1/failures/clusters`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFilter {
    /// Only clusters of this project.
    pub project_id: Option<Uuid>,
    /// Only clusters with this status.
    pub status: Option<ClusterStatus>,
    /// Only clusters of this type.
    pub failure_type: Option<FailureType>,
    /// With the newest failure at this time or later.
    pub from: Option<Timestamp>,
    /// With the newest failure at this time or earlier.
    pub to: Option<Timestamp>,
}

/// The `data` of the webhook event `failure.detected`: a trace for which failure rules fired.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailureDetected {
    /// The first failure that matched; null if the rules fired because of an evaluation.
    pub failure: Option<Failure>,
    /// The evaluation with a low score; null if the rules fired because of a failure.
    pub evaluation: Option<LowScore>,
    /// The trace.
    pub trace: FailedTrace,
    /// The rules that fired.
    pub rules: Vec<FiredRule>,
}

/// An evaluation that scored low enough for a failure rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LowScore {
    /// The evaluation.
    pub id: Uuid,
    /// The metric.
    pub metric_name: String,
    /// The score.
    pub score: f64,
    /// The label.
    pub label: Option<String>,
}

/// The summary of a trace in an event: the fields of the trace without its input and output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailedTrace {
    /// Identifies the trace.
    pub id: Uuid,
    /// The project.
    pub project_id: Uuid,
    /// The sender's own identifier.
    pub external_id: Option<String>,
    /// The conversation.
    pub session_id: Option<String>,
    /// The end user.
    pub user_id: Option<String>,
    /// The name.
    pub name: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The error message, cut to 2,000 characters; null if the trace as a whole succeeded so far.
    pub error: Option<String>,
    /// Start.
    pub started_at: Timestamp,
    /// End.
    pub ended_at: Option<Timestamp>,
    /// Latency in milliseconds.
    pub latency_ms: Option<i64>,
    /// Cost in US dollars.
    pub cost: Option<f64>,
    /// Prompt and completion tokens.
    pub total_token_count: i64,
    /// Number of spans so far.
    pub span_count: i32,
}
