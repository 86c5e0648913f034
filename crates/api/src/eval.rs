//! Evaluations: the results of evaluators for traces.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{enums::words, time::Timestamp};

words! {
    /// How an evaluator works.
    EvaluatorType {
        /// A judge model grades the trace against a rubric.
        Llm = "llm",
        /// Deterministic code runs against the trace (a code evaluator).
        Rule = "rule",
    }
}

words! {
    /// Progress of an evaluation.
    EvaluationStatus {
        /// Waits for a worker.
        Pending = "pending",
        /// A worker runs it.
        Running = "running",
        /// Finished with a score.
        Complete = "complete",
        /// Finished without a score; `error` gives the reason and the remedy.
        Failed = "failed",
    }
}

words! {
    /// Why an evaluation was made.
    EvaluationContext {
        /// The trace was ingested.
        Fresh = "fresh",
        /// A control action published a new output on the trace.
        Remediation = "remediation",
    }
}

words! {
    /// Which of a provider's judge models is used.
    ModelTier {
        /// The cheaper model.
        Cheap = "cheap",
        /// The more accurate model.
        Premium = "premium",
    }
}

/// Body of `POST /v1/eval`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewEvaluation {
    /// The trace to evaluate.
    pub trace_id: Uuid,
    /// The evaluator: built-in or custom.
    pub metric_name: String,
    /// For evaluators of both types; default: the type that the configuration implies.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<EvaluatorType>))]
    pub evaluator_type: Option<String>,
    /// Options of the evaluator, as in its `config_schema`. `threshold` (0 to 1, default 0.7) is the
    /// lowest score with the label `pass`.
    #[serde(default)]
    pub config: Option<Map<String, Value>>,
    /// Tier of the judge model; default `cheap`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<ModelTier>))]
    pub model_tier: Option<String>,
    /// The span to evaluate; default: the whole trace.
    #[serde(default)]
    pub span_id: Option<Uuid>,
}

/// The result of an evaluator for a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The score, from 0.0 to 1.0; 1.0 is good.
    pub score: f64,
    /// `pass`, `warn`, `fail`, or a label of the evaluator's scale.
    pub label: String,
    /// The explanation for users. It never repeats personal data or a secret.
    pub reasoning: String,
}

/// A result of an evaluator for a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Evaluation {
    /// Identifies the evaluation.
    pub id: Uuid,
    /// The evaluated trace.
    pub trace_id: Uuid,
    /// The trace's project.
    pub project_id: Uuid,
    /// The evaluated span; null for the whole trace.
    pub span_id: Option<Uuid>,
    /// The evaluator.
    pub metric_name: String,
    /// Type of the evaluator.
    pub evaluator_type: EvaluatorType,
    /// The evaluator and its version, such as `faithfulness@1`; `external` when a client sent the
    /// score.
    pub evaluator_version: String,
    /// Progress.
    pub status: EvaluationStatus,
    /// Why the evaluation was made.
    pub context: EvaluationContext,
    /// 0.0 (worst) to 1.0 (best); other scales only for external evaluations. Null until `complete`.
    pub score: Option<f64>,
    /// `pass`, `warn`, `fail`, or a label of the evaluator's scale.
    pub label: Option<String>,
    /// The evaluator's explanation of the score.
    pub reasoning: Option<String>,
    /// The reason of the failure and the remedy; null unless `failed`.
    pub error: Option<String>,
    /// The eval rule that created it; null for evaluations on demand or in bulk.
    pub rule_id: Option<Uuid>,
    /// The bulk evaluation or backfill that created it.
    pub bulk_id: Option<Uuid>,
    /// The control action that produced the evaluated output; only when `context` is `remediation`.
    pub source_action_id: Option<Uuid>,
    /// The baseline of the comparison; null when `context` is `fresh`.
    pub original_evaluation_id: Option<Uuid>,
    /// The tier of the judge model; null for type `rule`.
    pub model_tier: Option<ModelTier>,
    /// The judge model.
    pub judge_model: Option<String>,
    /// Prompt tokens of the judge, over all calls.
    pub prompt_tokens: Option<i64>,
    /// Completion tokens of the judge, over all calls.
    pub completion_tokens: Option<i64>,
    /// Cost of the judge in US dollars; null when the price of the model is unknown.
    pub cost: Option<f64>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time at which it became `complete` or `failed`.
    pub completed_at: Option<Timestamp>,
}

/// Selects evaluations; absent fields do not restrict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvaluationFilter {
    /// Evaluations of this project.
    pub project_id: Option<Uuid>,
    /// Evaluations of this trace.
    pub trace_id: Option<Uuid>,
    /// Evaluations by this evaluator.
    pub metric_name: Option<String>,
    /// Evaluations by evaluators of this type.
    pub evaluator_type: Option<EvaluatorType>,
    /// Evaluations with this status.
    pub status: Option<EvaluationStatus>,
    /// Evaluations with this label.
    pub label: Option<String>,
    /// Evaluations made for this reason.
    pub context: Option<EvaluationContext>,
    /// Evaluations created by this eval rule.
    pub rule_id: Option<Uuid>,
    /// Evaluations created at or after this time.
    pub from: Option<Timestamp>,
    /// Evaluations created at or before this time.
    pub to: Option<Timestamp>,
    /// Evaluations with at least this score.
    pub min_score: Option<f64>,
    /// Evaluations with at most this score.
    pub max_score: Option<f64>,
}

/// The `data` of the webhook event `evaluation.failed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EvaluationFailed {
    /// The evaluation, with its error.
    pub evaluation: Evaluation,
}

/// A page of evaluations, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EvaluationList {
    /// The evaluations.
    pub evaluations: Vec<Evaluation>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// Body of `POST /v1/eval/bulk`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewBulk {
    /// The evaluator.
    pub metric_name: String,
    /// For evaluators of both types.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<EvaluatorType>))]
    pub evaluator_type: Option<String>,
    /// Selects the traces: the parameters of `GET /v1/traces` except `q`, `cursor`, `limit` and
    /// `preview`. `tag` may be a list.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub filter: Option<Map<String, Value>>,
    /// Options of the evaluator.
    #[serde(default)]
    pub config: Option<Map<String, Value>>,
    /// Tier of the judge model; default `cheap`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<ModelTier>))]
    pub model_tier: Option<String>,
}

/// Response to a request for a bulk evaluation or a backfill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BulkStarted {
    /// Number of traces that match the filter.
    pub matched: i64,
    /// Number of evaluations queued; smaller than `matched` when a quota is exhausted. For a backfill
    /// an upper bound, because traces that the rule has already evaluated are skipped.
    pub queued: i64,
    /// Identifies the bulk evaluation.
    pub bulk_id: Uuid,
}

words! {
    /// Progress of a bulk evaluation.
    BulkStatus {
        /// Some evaluations are not finished.
        Running = "running",
        /// All evaluations are finished.
        Complete = "complete",
    }
}

/// Progress of a bulk evaluation or a backfill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Bulk {
    /// Identifies the bulk evaluation.
    pub bulk_id: Uuid,
    /// The evaluator.
    pub metric_name: String,
    /// The eval rule of a backfill; null for a bulk evaluation.
    pub rule_id: Option<Uuid>,
    /// Whether evaluations are unfinished.
    pub status: BulkStatus,
    /// Number of traces that matched the filter.
    pub matched: i64,
    /// Number of evaluations queued; while a backfill runs, the number so far.
    pub queued: i64,
    /// Number of waiting evaluations.
    pub pending: i64,
    /// Number of running evaluations.
    pub running: i64,
    /// Number of evaluations with a score.
    pub complete: i64,
    /// Number of failed evaluations.
    pub failed: i64,
    /// Why fewer evaluations were queued than traces matched, or why it ended early; null when all were
    /// queued.
    pub detail: Option<String>,
    /// Creation time.
    pub created_at: Timestamp,
}
