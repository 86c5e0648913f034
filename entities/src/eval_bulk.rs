//! Table `eval_bulk`: one evaluator over many traces, by hand or as the backfill of a rule.

use sea_orm::entity::prelude::*;

/// A bulk run.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "eval_bulk")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The rule whose backfill it is; null by hand.
    pub rule_id: Option<Uuid>,
    /// The evaluator.
    pub metric_name: String,
    /// A word of [`api::eval::EvaluatorType`].
    pub evaluator_type: String,
    /// A word of [`api::eval::ModelTier`]; null for type `rule`.
    pub model_tier: Option<String>,
    /// JSON object: options of the evaluator.
    pub config: String,
    /// JSON object: which traces.
    pub filter: String,
    /// Traces selected when it was asked for.
    pub matched: i64,
    /// Evaluations granted then.
    pub granted: i64,
    /// Evaluations made so far.
    pub queued: i64,
    /// Whether all are made.
    pub filled: bool,
    /// Start of the last trace looked at, microseconds; null before the first.
    pub position_at: Option<i64>,
    /// Its id.
    pub position_id: Option<Uuid>,
    /// The month whose quota `granted` was taken from; null when it costs none.
    pub quota_month: Option<i32>,
    /// Why fewer are granted than matched.
    pub detail: Option<String>,
    /// Microseconds.
    pub created_at: i64,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
