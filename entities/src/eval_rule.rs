//! Table `eval_rule`: an evaluator that runs on every matching trace.

use sea_orm::entity::prelude::*;

/// A rule.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "eval_rule")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The project it applies to.
    pub project_id: Uuid,
    /// The evaluator.
    pub metric_name: String,
    /// A word of [`api::eval::EvaluatorType`].
    pub evaluator_type: String,
    /// JSON object: options of the evaluator.
    pub config: String,
    /// Whether it fires.
    pub enabled: bool,
    /// A word of [`api::eval::ModelTier`].
    pub model_tier: String,
    /// Smallest drop that raises an alert; null as 0.
    pub min_score_drop: Option<f64>,
    /// JSON object: [`api::eval_rule::RuleFilter`].
    pub filter: String,
    /// 0 to 1.
    pub sample_rate: f64,
    /// What the judge's provider said that trying again can't mend; null when it runs.
    pub paused_reason: Option<String>,
    /// When the provider said so, microseconds; the rule rests for a while from then on.
    pub paused_at: Option<i64>,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds.
    pub updated_at: i64,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
