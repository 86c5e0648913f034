//! Table `policy`: what the control loop does with a failing or badly evaluated trace.

use sea_orm::entity::prelude::*;

/// A policy.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "policy")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The project of the traces.
    pub project_id: Uuid,
    /// The name.
    pub name: String,
    /// Whether the trigger requests actions.
    pub enabled: bool,
    /// A word of [`api::policy::TriggerType`]; null for a policy that acts only on request.
    pub trigger_type: Option<String>,
    /// Bit set of the [`api::FailureType`]s that trigger it.
    pub failure_types: i16,
    /// The metric whose low scores trigger it.
    pub metric_name: Option<String>,
    /// The highest score that triggers it.
    pub max_score: Option<f64>,
    /// A word of [`api::control::ActionType`], not `escalate`.
    pub action_type: String,
    /// JSON object: [`api::control::ActionConfig`], without the secret of the callback.
    pub action_config: String,
    /// Signs requests to the callback, sealed; null without a callback.
    pub callback_secret: Option<Vec<u8>>,
    /// Whether its actions wait for approval.
    pub require_approval: bool,
    /// Maximum number of retries on a trace; further retries are escalated.
    pub max_retry_depth: i16,
    /// Maximum number of remediations on a trace; further actions are escalated.
    pub max_cascade_depth: i16,
    /// Minimum time between two triggered actions on a trace, seconds.
    pub cooldown_seconds: i32,
    /// Maximum cost of its actions per day (UTC), pico-dollars; null for no limit.
    pub daily_budget: Option<i64>,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds.
    pub updated_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
