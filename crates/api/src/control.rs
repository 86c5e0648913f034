//! Control actions: retries, fallback models, prompt modifications, and escalations to people.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Timestamp, enums::words};

words! {
    /// What a control action does.
    ActionType {
        /// Repeats the request of a span.
        Retry = "retry",
        /// Repeats the request with another model.
        FallbackModel = "fallback_model",
        /// Repeats the request with another prompt.
        PromptModification = "prompt_modification",
        /// Waits until a person decides whether the requested action is executed.
        Escalate = "escalate",
    }
}

impl ActionType {
    /// The types that can be requested.
    pub const REQUESTABLE_TYPES: [Self; 3] = [Self::Retry, Self::FallbackModel, Self::PromptModification];
}

words! {
    /// The progress of a control action.
    ActionStatus {
        /// Waits for approval.
        PendingApproval = "pending_approval",
        /// Waits for execution.
        Queued = "queued",
        /// Waits for the provider.
        Running = "running",
        /// The remediated span is stored.
        Succeeded = "succeeded",
        /// Ended without a remediated span.
        Failed = "failed",
        /// An owner rejected it.
        Rejected = "rejected",
    }
}

words! {
    /// Why an action was escalated.
    EscalationReason {
        /// The trace has as many retries as `max_retry_depth` allows.
        RetryThresholdExceeded = "retry_threshold_exceeded",
        /// The trace has as many actions as `max_cascade_depth` allows.
        CascadeDepthExhausted = "cascade_depth_exhausted",
    }
}

words! {
    /// What triggers a policy.
    TriggerType {
        /// A failing span of a trace that is ready.
        Failure = "failure",
        /// An evaluation with a low score.
        Evaluation = "evaluation",
    }
}

/// The placeholder of the recorded system message in [`ActionConfig::prompt_template`].
pub const SYSTEM_PLACEHOLDER: &str = "{{system}}";

/// How a request is changed before it is repeated, and who repeats it.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ActionConfig {
    /// The model; required for `fallback_model`, and not allowed otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Text that is appended to the system message; only for `prompt_modification`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_suffix: Option<String>,
    /// The new system message; only for `prompt_modification`. `{{system}}`, at most once, stands for the
    /// recorded one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_template: Option<String>,
    /// The temperature, 0 to 2; default: the recorded one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The tenant's own `https` address that repeats the request instead of the provider; only in a policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    /// The secret that signs requests to `callback_url`, at least 16 characters. It is never returned, and kept while
    /// `callback_url` does not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(write_only))]
    pub callback_secret: Option<String>,
}

impl std::fmt::Debug for ActionConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { model, system_suffix, prompt_template, temperature, callback_url, callback_secret: _ } =
            self;
        f.debug_struct("ActionConfig")
            .field("model", model)
            .field("system_suffix", system_suffix)
            .field("prompt_template", prompt_template)
            .field("temperature", temperature)
            .field("callback_url", callback_url)
            .finish_non_exhaustive()
    }
}

/// An action of the control loop on a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ControlAction {
    /// Identifies the action.
    pub id: Uuid,
    /// The project of the trace.
    pub project_id: Uuid,
    /// The trace.
    pub trace_id: Uuid,
    /// The span whose request is repeated; null if the trace had no span.
    pub span_id: Option<Uuid>,
    /// The policy that requested the action, or whose limits apply; null for the default limits.
    pub policy_id: Option<Uuid>,
    /// What the action does.
    pub action_type: ActionType,
    /// How the request is changed.
    pub action_config: ActionConfig,
    /// The progress.
    pub status: ActionStatus,
    /// Whether a person must approve the action.
    pub require_approval: bool,
    /// Why the action exists, and why it was escalated.
    pub metadata: ActionMetadata,
    /// The span with the output of the action.
    pub remediated_span_id: Option<Uuid>,
    /// Why the action failed.
    pub error: Option<String>,
    /// The subject of the session that requested the action; null if a policy did.
    pub requested_by: Option<String>,
    /// The subject of the session that approved or rejected the action.
    pub decided_by: Option<String>,
    /// Time of that decision.
    pub decided_at: Option<Timestamp>,
    /// Number of calls to the provider that were begun.
    pub attempts: i32,
    /// Cost in US dollars; of an interrupted call, that of the original call. Null if the price is unknown, or there was no
    /// output.
    pub cost: Option<f64>,
    /// Time at which the action ended.
    pub completed_at: Option<Timestamp>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// Why a control action exists, and why it was escalated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ActionMetadata {
    /// Why the action was escalated; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation_reason: Option<EscalationReason>,
    /// The number of actions on the trace that reached the limit; absent unless the action was escalated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_count: Option<i32>,
    /// The type that was requested; absent unless the action was escalated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_action_type: Option<ActionType>,
    /// What triggered the policy; absent if a person requested the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<TriggerType>,
    /// The failing span that triggered the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_span_id: Option<Uuid>,
    /// The evaluation that triggered the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation_id: Option<Uuid>,
}

/// Body of `POST /v1/control/actions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewControlAction {
    /// The trace.
    pub trace_id: Uuid,
    /// `retry`, `fallback_model` or `prompt_modification`.
    #[cfg_attr(feature = "schema", schema(value_type = ActionType))]
    pub action_type: String,
    /// The span whose request is repeated; default: the last model call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_id: Option<Uuid>,
    /// The policy whose limits and configuration apply; default: the default limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_id: Option<Uuid>,
    /// How the request is changed; default: the policy's.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::object::one")]
    pub action_config: Option<ActionConfig>,
}

/// A page of control actions, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ControlActionList {
    /// The actions.
    pub actions: Vec<ControlAction>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// The filters of `GET /v1/control/actions`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionFilter {
    /// Only actions of this project.
    pub project_id: Option<Uuid>,
    /// Only actions on this trace.
    pub trace_id: Option<Uuid>,
    /// Only actions of this policy.
    pub policy_id: Option<Uuid>,
    /// Only actions of this type.
    pub action_type: Option<ActionType>,
    /// Only actions with this status.
    pub status: Option<ActionStatus>,
    /// Created at this time or later.
    pub from: Option<Timestamp>,
    /// Created at this time or earlier.
    pub to: Option<Timestamp>,
}

/// What an action changed: the output of the original span compared with the output of the remediated span.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RemediationDiff {
    /// The action.
    pub action_id: Uuid,
    /// The span whose request was repeated.
    pub original_span_id: Uuid,
    /// The span with the output of the action.
    pub remediated_span_id: Uuid,
    /// The output of the original span; null if it had none.
    pub original_output: Option<String>,
    /// The output of the action.
    pub remediated_output: Option<String>,
    /// The output tokens of the action minus those of the original span; null if one of them is unknown.
    pub token_length_delta: Option<i64>,
    /// The latency of the action minus that of the original span, milliseconds; null if one of them is unknown.
    pub latency_delta_ms: Option<i64>,
    /// The cosine similarity of the embedded outputs, -1 to 1; null without an embedding provider, or an output.
    pub embedding_similarity: Option<f64>,
    /// The scores of the eval rules that evaluated the output of the action.
    pub eval_deltas: Vec<EvalDelta>,
}

/// The scores of an eval rule before and after an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EvalDelta {
    /// The eval rule.
    pub rule_id: Uuid,
    /// The metric.
    pub metric_name: String,
    /// The score of the baseline evaluation; null without one.
    pub original_score: Option<f64>,
    /// The score of the output of the action; null if the evaluation failed.
    pub remediated_score: Option<f64>,
    /// The score of the output of the action minus that of the baseline.
    pub delta: Option<f64>,
    /// Whether the score dropped by the rule's `min_score_drop` or more.
    pub regressed: bool,
}

/// Response of `GET /v1/control/actions/{id}/diff` while evaluations are not complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DiffProgress {
    /// Always `evaluating`.
    pub status: DiffStatus,
    /// Number of evaluations that ended.
    pub completed: usize,
    /// Number of all evaluations of the output.
    pub total: usize,
}

/// The response of `GET /v1/control/actions/{id}/diff`, as clients read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DiffResponse {
    /// Evaluations of the output have not ended (status 202).
    Evaluating(DiffProgress),
    /// The diff (status 200).
    Complete(RemediationDiff),
}

words! {
    /// The state of a diff that is not complete.
    DiffStatus {
        /// The action or evaluations of its output have not ended.
        Evaluating = "evaluating",
    }
}

/// The `data` of the webhook event `control_action.pending_approval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ActionPendingApproval {
    /// The action.
    pub action: ControlAction,
}
