//! Failure rules: conditions on traces that trigger webhooks and policies.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{FailureType, Timestamp, eval_rule::RuleFilter};

/// Fires once for each trace with a failure of one of its types, or with a low score of its metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailureRule {
    /// Identifies the rule.
    pub id: Uuid,
    /// The name.
    pub name: String,
    /// Whether the rule fires.
    pub enabled: bool,
    /// The project of the traces; null for all projects.
    pub project_id: Option<Uuid>,
    /// The failure types that match; empty if only scores do.
    pub failure_types: Vec<FailureType>,
    /// The metric whose low scores match; null if only failures do.
    pub metric_name: Option<String>,
    /// The highest score of the metric that matches.
    pub max_score: Option<f64>,
    /// Selects the traces; an empty filter selects all.
    pub filter: RuleFilter,
    /// The rule fires while at least this number of traces matched within the window.
    pub min_count: i32,
    /// The window in minutes.
    pub window_minutes: i32,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Time at which it last fired; null if it never did.
    pub last_fired_at: Option<Timestamp>,
}

/// A rule that fired, in an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FiredRule {
    /// The ID of the rule.
    pub id: Uuid,
    /// The name of the rule.
    pub name: String,
}

/// Body of `POST /v1/failure-rules`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewFailureRule {
    /// The name, at most 200 characters.
    pub name: String,
    /// Default: true.
    #[serde(default)]
    pub enabled: Option<bool>,
    /// The project of the traces; default: all projects.
    #[serde(default)]
    pub project_id: Option<Uuid>,
    /// The failure types that match. Default: `timeout`, `rate_limit`, `invalid_response` and `context_length`; none if
    /// `metric_name` is given.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Vec<FailureType>>))]
    pub failure_types: Option<Vec<String>>,
    /// The metric whose low scores match. `max_score` is required with it.
    #[serde(default)]
    pub metric_name: Option<String>,
    /// The highest score of the metric that matches.
    #[serde(default)]
    pub max_score: Option<f64>,
    /// Selects the traces; default: all.
    #[serde(default)]
    pub filter: Option<RuleFilter>,
    /// Minimum number of matching traces within the window for the rule to fire, 1 to 1,000; default 1.
    #[serde(default)]
    pub min_count: Option<i64>,
    /// The window in minutes, 1 to 10,080 (7 days); default 60.
    #[serde(default)]
    pub window_minutes: Option<i64>,
}

/// Body of `PATCH /v1/failure-rules/{id}`. Absent fields keep their values.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailureRuleChange {
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the rule fires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The project of the traces; null for all projects.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::object::given")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Uuid>))]
    pub project_id: Option<Option<Uuid>>,
    /// Replaces the failure types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Vec<FailureType>>))]
    pub failure_types: Option<Vec<String>>,
    /// The metric whose low scores match; null for none, which clears `max_score` too.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::object::given")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub metric_name: Option<Option<String>>,
    /// The highest score of the metric that matches.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::object::given")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    pub max_score: Option<Option<f64>>,
    /// Replaces the whole filter; null selects all traces.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::object::given")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<RuleFilter>))]
    pub filter: Option<Option<RuleFilter>>,
    /// Minimum number of matching traces within the window for the rule to fire, 1 to 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_count: Option<i64>,
    /// The window in minutes, 1 to 10,080 (7 days).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_minutes: Option<i64>,
}

/// A page of failure rules, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailureRuleList {
    /// The rules.
    pub failure_rules: Vec<FailureRule>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
