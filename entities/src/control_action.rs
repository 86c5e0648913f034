//! Table `control_action`: the actions of the control loop on traces, by time.

use sea_orm::entity::prelude::*;

/// A control action.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "control_action")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant, ordered by `created_at`.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The trace's project.
    pub project_id: Uuid,
    /// The trace.
    pub trace_id: Uuid,
    /// The span whose request is repeated; null if the trace had none.
    pub span_id: Option<Uuid>,
    /// The policy that requested it, or whose limits apply.
    pub policy_id: Option<Uuid>,
    /// A word of [`api::control::ActionType`].
    pub action_type: String,
    /// The type that was requested; differs from `action_type` if the action was escalated.
    pub requested_type: String,
    /// JSON object: [`api::control::ActionConfig`].
    pub action_config: String,
    /// A word of [`api::control::ActionStatus`].
    pub status: String,
    /// Whether a person must approve it.
    pub require_approval: bool,
    /// Whether it counts towards the depths of its trace.
    pub is_counted: bool,
    /// A word of [`api::control::EscalationReason`]; null unless it was escalated.
    pub escalation_reason: Option<String>,
    /// The number of actions that was compared with the limit when it was escalated.
    pub retry_count: Option<i32>,
    /// A word of [`api::policy::TriggerType`]; null for an action that a person requested.
    pub trigger_type: Option<String>,
    /// The failing span or the evaluation that triggered it.
    pub trigger_id: Option<Uuid>,
    /// The span with its output.
    pub remediated_span_id: Option<Uuid>,
    /// Why it failed.
    pub error: Option<String>,
    /// The subject of the session that requested it; null for a triggered action.
    pub requested_by: Option<String>,
    /// The subject of the session that approved or rejected it.
    pub decided_by: Option<String>,
    /// Time of the decision, microseconds.
    pub decided_at: Option<i64>,
    /// Number of calls to the provider that were begun.
    pub attempts: i32,
    /// Time at which the latest of these calls was begun, microseconds.
    pub called_at: Option<i64>,
    /// Cost in pico-dollars; while it runs, and if it was interrupted, that of the original span.
    pub cost: Option<i64>,
    /// The cosine similarity of the embedded outputs; null until a diff needs it.
    pub similarity: Option<f64>,
    /// Time at which it ended, microseconds.
    pub completed_at: Option<i64>,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds.
    pub updated_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
