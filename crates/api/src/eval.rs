//! Evaluations: judgements of traces by evaluators.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{Timestamp, enums::words};

words! {
    /// How an evaluator judges.
    EvaluatorType {
        /// A judge model grades the trace against a rubric.
        Llm = "llm",
        /// Code runs against the trace; deterministic.
        Rule = "rule",
    }
}

words! {
    /// How far an evaluation is.
    EvaluationStatus {
        /// Waits for a worker.
        Pending = "pending",
        /// A worker is at it.
        Running = "running",
        /// It has a score.
        Complete = "complete",
        /// It has none; `error` says why and what to do.
        Failed = "failed",
    }
}

words! {
    /// What is judged.
    EvaluationContext {
        /// A trace as it was ingested.
        Fresh = "fresh",
        /// The output of a control action, published on the trace again.
        Remediation = "remediation",
    }
}

words! {
    /// Which of a provider's judge models judges.
    ModelTier {
        /// The one that costs less.
        Cheap = "cheap",
        /// The one that judges better.
        Premium = "premium",
    }
}

/// Body of `POST /v1/eval`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewEvaluation {
    /// What is judged.
    pub trace_id: Uuid,
    /// The evaluator: a built-in or one of the tenant's own.
    pub metric_name: String,
    /// For evaluators that offer both; default: what the config calls for.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<EvaluatorType>))]
    pub evaluator_type: Option<String>,
    /// Options of the evaluator, by its `config_schema`. `threshold` (0 to 1, default 0.7) is the
    /// score from which on the label is `pass`.
    #[serde(default)]
    pub config: Option<Map<String, Value>>,
    /// Which judge model; default `cheap`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<ModelTier>))]
    pub model_tier: Option<String>,
    /// The span that is judged, if not the whole trace.
    #[serde(default)]
    pub span_id: Option<Uuid>,
}

/// One evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Evaluation {
    /// Its id.
    pub id: Uuid,
    /// What is judged.
    pub trace_id: Uuid,
    /// The trace's project.
    pub project_id: Uuid,
    /// The span that is judged; null for the whole trace.
    pub span_id: Option<Uuid>,
    /// The evaluator.
    pub metric_name: String,
    /// How it judges.
    pub evaluator_type: EvaluatorType,
    /// The evaluator with its version, such as `faithfulness@1`; `external` when a client sent the score.
    pub evaluator_version: String,
    /// How far it is.
    pub status: EvaluationStatus,
    /// What is judged.
    pub context: EvaluationContext,
    /// 0.0 to 1.0, where 1.0 is good; another scale only for what clients send. Null until `complete`.
    pub score: Option<f64>,
    /// `pass`, `warn`, `fail`, or a level of the evaluator's own.
    pub label: Option<String>,
    /// Why this score.
    pub reasoning: Option<String>,
    /// Why it failed and what to do; null unless `failed`.
    pub error: Option<String>,
    /// The rule that asked for it; null by hand or in bulk.
    pub rule_id: Option<Uuid>,
    /// The bulk run or backfill it belongs to.
    pub bulk_id: Option<Uuid>,
    /// The control action whose output is judged; only when `context` is `remediation`.
    pub source_action_id: Option<Uuid>,
    /// The baseline that this one is compared with; null when fresh.
    pub original_evaluation_id: Option<Uuid>,
    /// The judge tier asked for; null for type `rule`.
    pub model_tier: Option<ModelTier>,
    /// The model that judged.
    pub judge_model: Option<String>,
    /// Tokens of what the judge was shown, over all calls.
    pub prompt_tokens: Option<i64>,
    /// Tokens of what the judge answered, over all calls.
    pub completion_tokens: Option<i64>,
    /// US dollars that the judge cost; null when its price is not known.
    pub cost: Option<f64>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it became `complete` or `failed`.
    pub completed_at: Option<Timestamp>,
}

/// A page of evaluations, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EvaluationList {
    /// The evaluations.
    pub evaluations: Vec<Evaluation>,
    /// More rows exist beyond this page.
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
    /// For evaluators that offer both.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<EvaluatorType>))]
    pub evaluator_type: Option<String>,
    /// Which traces: the parameters of `GET /v1/traces` but `q`, `cursor`, `limit` and `preview`. `tag` may
    /// be a list.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub filter: Option<Map<String, Value>>,
    /// Options of the evaluator.
    #[serde(default)]
    pub config: Option<Map<String, Value>>,
    /// Which judge model; default `cheap`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<ModelTier>))]
    pub model_tier: Option<String>,
}

/// Answer to a request for many evaluations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BulkStarted {
    /// Traces that the filter selects.
    pub matched: i64,
    /// Evaluations queued, fewer when a quota ends. Of a backfill: at most so many, since what the rule has
    /// judged is left out.
    pub queued: i64,
    /// Under which progress is told.
    pub bulk_id: Uuid,
}

words! {
    /// How far a bulk run is.
    BulkStatus {
        /// Some evaluations are not finished.
        Running = "running",
        /// All are.
        Complete = "complete",
    }
}

/// Progress of many evaluations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Bulk {
    /// Its id.
    pub bulk_id: Uuid,
    /// The evaluator.
    pub metric_name: String,
    /// The rule that was backfilled; null for a bulk run.
    pub rule_id: Option<Uuid>,
    /// Whether evaluations are left.
    pub status: BulkStatus,
    /// Traces that the filter selected.
    pub matched: i64,
    /// Evaluations queued; of a backfill that is under way, so far.
    pub queued: i64,
    /// Those that wait.
    pub pending: i64,
    /// Those being worked on.
    pub running: i64,
    /// Those with a score.
    pub complete: i64,
    /// Those without.
    pub failed: i64,
    /// Why fewer were queued than matched, or why it ended early; null when all were queued.
    pub detail: Option<String>,
    /// When it was asked for.
    pub created_at: Timestamp,
}
