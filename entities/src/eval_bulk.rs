//! Table `eval_bulk`: bulk evaluations and backfills of eval rules.

use sea_orm::entity::prelude::*;

/// A bulk evaluation or backfill.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "eval_bulk")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The eval rule of a backfill; null for a bulk evaluation.
    pub rule_id: Option<Uuid>,
    /// The evaluator.
    pub metric_name: String,
    /// A word of [`api::eval::EvaluatorType`].
    pub evaluator_type: String,
    /// A word of [`api::eval::ModelTier`]; null for type `rule`.
    pub model_tier: Option<String>,
    /// Options of the evaluator, a JSON object.
    pub config: String,
    /// The filter of the traces, a JSON object.
    pub filter: String,
    /// Number of matching traces at the time of the request.
    pub matched: i64,
    /// Number of evaluations that the quota allowed at that time.
    pub granted: i64,
    /// Number of evaluations created so far.
    pub queued: i64,
    /// Whether all evaluations are created.
    pub filled: bool,
    /// Start of the last trace processed, microseconds; null before the first.
    pub position_at: Option<i64>,
    /// Key of the last trace processed.
    pub position_key: Option<i64>,
    /// The month whose quota `granted` was taken from; null if it uses no quota.
    pub quota_month: Option<i32>,
    /// Why fewer evaluations are created than traces matched.
    pub detail: Option<String>,
    /// Microseconds.
    pub created_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
