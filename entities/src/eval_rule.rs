//! Table `eval_rule`: rules that run an evaluator on every matching trace.

use sea_orm::entity::prelude::*;

/// An eval rule.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "eval_rule")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The project whose traces the rule evaluates.
    pub project_id: Uuid,
    /// The evaluator.
    pub metric_name: String,
    /// A word of [`api::eval::EvaluatorType`].
    pub evaluator_type: String,
    /// Options of the evaluator, a JSON object.
    pub config: String,
    /// Whether the rule fires on new traces.
    pub enabled: bool,
    /// A word of [`api::eval::ModelTier`].
    pub model_tier: String,
    /// Smallest score drop that raises an alert; null means 0.
    pub min_score_drop: Option<f64>,
    /// The filter of the traces: [`api::eval_rule::RuleFilter`] as JSON.
    pub filter: String,
    /// Share of the matching traces that is evaluated, 0 to 1.
    pub sample_rate: f64,
    /// The judge provider's permanent error that paused the rule; null when it runs.
    pub paused_reason: Option<String>,
    /// Time of that error, microseconds; the rule is paused for a period from then on.
    pub paused_at: Option<i64>,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds.
    pub updated_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
