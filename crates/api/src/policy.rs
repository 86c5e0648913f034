//! Policies: when the control loop acts, and within which limits.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use crate::control::TriggerType;
use crate::{
    FailureType, Timestamp,
    control::{ActionConfig, ActionType},
};

/// `max_retry_depth` of an action without a policy, and of a policy that sets none.
pub const DEFAULT_MAX_RETRY_DEPTH: i16 = 3;
/// `max_cascade_depth` of an action without a policy, and of a policy that sets none.
pub const DEFAULT_MAX_CASCADE_DEPTH: i16 = 5;

/// Requests control actions on failing or badly evaluated traces of a project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Policy {
    /// Identifies the policy.
    pub id: Uuid,
    /// The project of the traces.
    pub project_id: Uuid,
    /// The name.
    pub name: String,
    /// Whether the trigger requests actions.
    pub enabled: bool,
    /// When the policy acts; null if it acts only on request.
    pub trigger: Option<PolicyTrigger>,
    /// What its actions do.
    pub action_type: ActionType,
    /// How its actions change a request.
    pub action_config: ActionConfig,
    /// Whether its actions wait for approval.
    pub require_approval: bool,
    /// Maximum number of retries on a trace, by all policies; further retries of this policy are escalated.
    pub max_retry_depth: i16,
    /// Maximum number of remediations on a trace, by all policies; further actions of this policy are
    /// escalated.
    pub max_cascade_depth: i16,
    /// Minimum time between two actions that the policy triggers on a trace, in seconds.
    pub cooldown_seconds: i32,
    /// Maximum cost of its actions per day (UTC) in US dollars; null for no limit.
    pub daily_budget_usd: Option<f64>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// When a policy acts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicyTrigger {
    /// What triggers the policy.
    #[serde(rename = "type")]
    pub trigger_type: TriggerType,
    /// The failure types; only for `failure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_types: Option<Vec<FailureType>>,
    /// The metric; only for `evaluation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric_name: Option<String>,
    /// The highest score that triggers the policy, 0 to 1; only for `evaluation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_score: Option<f64>,
}

/// The trigger in a request. Its words are strings, so that an unknown word is a validation error (422).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewPolicyTrigger {
    /// `failure` or `evaluation`.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "schema", schema(value_type = TriggerType))]
    pub trigger_type: String,
    /// The failure types; required for `failure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Vec<FailureType>>))]
    pub failure_types: Option<Vec<String>>,
    /// The metric; required for `evaluation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric_name: Option<String>,
    /// The highest score that triggers the policy, 0 to 1; required for `evaluation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_score: Option<f64>,
}

/// Body of `POST /v1/policies`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewPolicy {
    /// The project of the traces.
    pub project_id: Uuid,
    /// `retry`, `fallback_model` or `prompt_modification`.
    #[cfg_attr(feature = "schema", schema(value_type = ActionType))]
    pub action_type: String,
    /// The name, at most 200 characters; default: the action type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// When the policy acts; default: only on request.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::object::one")]
    pub trigger: Option<NewPolicyTrigger>,
    /// How its actions change a request.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::object::one")]
    pub action_config: Option<ActionConfig>,
    /// Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_approval: Option<bool>,
    /// 1 to 10, default 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retry_depth: Option<i64>,
    /// 1 to 20, default 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cascade_depth: Option<i64>,
    /// 0 to 604,800 (7 days), default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown_seconds: Option<i64>,
    /// Maximum cost per day (UTC) in US dollars; default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily_budget_usd: Option<f64>,
}

/// Body of `PATCH /v1/policies/{id}`. Absent fields keep their values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicyChange {
    /// The project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<Uuid>,
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the trigger requests actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Replaces the trigger; null for none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::object::given_one")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<NewPolicyTrigger>))]
    pub trigger: Option<Option<NewPolicyTrigger>>,
    /// The action type. With another type, `action_config` is required unless the type needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<ActionType>))]
    pub action_type: Option<String>,
    /// Replaces the whole configuration.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::object::one")]
    pub action_config: Option<ActionConfig>,
    /// Whether its actions wait for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_approval: Option<bool>,
    /// 1 to 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retry_depth: Option<i64>,
    /// 1 to 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cascade_depth: Option<i64>,
    /// 0 to 604,800 (7 days).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown_seconds: Option<i64>,
    /// Maximum cost per day (UTC) in US dollars; null for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::object::given")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    pub daily_budget_usd: Option<Option<f64>>,
}

/// A page of policies, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicyList {
    /// The policies.
    pub policies: Vec<Policy>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
