//! Table `evaluation`: results of evaluators for traces.

use sea_orm::entity::prelude::*;

/// An evaluation and its progress.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "evaluation")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The evaluated trace.
    pub trace_id: Uuid,
    /// The trace's project.
    pub project_id: Uuid,
    /// The evaluated span; null for the whole trace.
    pub span_id: Option<Uuid>,
    /// The evaluator.
    pub metric_name: String,
    /// A word of [`api::eval::EvaluatorType`].
    pub evaluator_type: String,
    /// The evaluator and its version; `external` when a client sent the score.
    pub evaluator_version: String,
    /// JSON object with the options of an evaluation on demand; null for evaluations of a rule or a
    /// bulk evaluation, which have their own.
    pub config: Option<String>,
    /// A word of [`api::eval::ModelTier`]; null for type `rule`.
    pub model_tier: Option<String>,
    /// A word of [`api::eval::EvaluationStatus`].
    pub status: String,
    /// A word of [`api::eval::EvaluationContext`].
    pub context: String,
    /// The control action whose output is evaluated; all zero if there is none, so that a unique index
    /// can contain it.
    pub source_action_id: Uuid,
    /// The baseline evaluation of the comparison.
    pub original_evaluation_id: Option<Uuid>,
    /// The eval rule that created it.
    pub rule_id: Option<Uuid>,
    /// The bulk evaluation that created it.
    pub bulk_id: Option<Uuid>,
    /// The score; 1.0 is best.
    pub score: Option<f64>,
    /// `pass`, `warn`, `fail`, or a label of the evaluator's scale.
    pub label: Option<String>,
    /// The evaluator's explanation of the score.
    pub reasoning: Option<String>,
    /// Why there is no score.
    pub error: Option<String>,
    /// The judge model.
    pub judge_model: Option<String>,
    /// Prompt tokens of the judge.
    pub prompt_tokens: Option<i64>,
    /// Completion tokens of the judge.
    pub completion_tokens: Option<i64>,
    /// Cost of the judge in pico-dollars.
    pub cost: Option<i64>,
    /// Number of times a worker claimed it. Also the fencing token: only the worker of the latest
    /// attempt can store the result.
    pub attempts: i32,
    /// Number of times a worker returned it to the waiting evaluations.
    pub returns: i32,
    /// Number of times the judge failed temporarily.
    pub asked: i32,
    /// The month (year * 100 + month) whose quota it uses; null if it uses none.
    pub quota_month: Option<i32>,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds; null until it is `complete` or `failed`.
    pub completed_at: Option<i64>,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
