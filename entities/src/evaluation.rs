//! Table `evaluation`: one judgement of a trace.

use sea_orm::entity::prelude::*;

/// An evaluation, and how far it is.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "evaluation")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// What is judged.
    pub trace_id: Uuid,
    /// The trace's project.
    pub project_id: Uuid,
    /// The span that is judged; null for the whole trace.
    pub span_id: Option<Uuid>,
    /// The evaluator.
    pub metric_name: String,
    /// A word of [`api::eval::EvaluatorType`].
    pub evaluator_type: String,
    /// The evaluator with its version; `external` when a client sent the score.
    pub evaluator_version: String,
    /// JSON object of the options of an evaluation that was asked for by hand; null where a rule
    /// or a bulk run has them.
    pub config: Option<String>,
    /// A word of [`api::eval::ModelTier`]; null for type `rule`.
    pub model_tier: Option<String>,
    /// A word of [`api::eval::EvaluationStatus`].
    pub status: String,
    /// A word of [`api::eval::EvaluationContext`].
    pub context: String,
    /// The control action whose output is judged; all zero when there is none, so that a unique
    /// index can hold it.
    pub source_action_id: Uuid,
    /// The baseline that this one is compared with.
    pub original_evaluation_id: Option<Uuid>,
    /// The rule that asked for it.
    pub rule_id: Option<Uuid>,
    /// The bulk run that it is part of.
    pub bulk_id: Option<Uuid>,
    /// 1.0 is good.
    pub score: Option<f64>,
    /// `pass`, `warn`, `fail`, or a level of the evaluator's own.
    pub label: Option<String>,
    /// Why this score.
    pub reasoning: Option<String>,
    /// Why there is none.
    pub error: Option<String>,
    /// The model that judged.
    pub judge_model: Option<String>,
    /// Tokens that the judge was shown.
    pub prompt_tokens: Option<i64>,
    /// Tokens that the judge answered.
    pub completion_tokens: Option<i64>,
    /// Pico-dollars.
    pub cost: Option<i64>,
    /// How often a worker took it up. It is also the fence: only the worker of the newest attempt
    /// can end it.
    pub attempts: i32,
    /// How often a worker put it back among those that wait.
    pub returns: i32,
    /// How often a judge was asked and could not answer for now.
    pub asked: i32,
    /// The month (year * 100 + month) whose quota it was taken from; null when it costs none.
    pub quota_month: Option<i32>,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds; null until it is `complete` or `failed`.
    pub completed_at: Option<i64>,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
