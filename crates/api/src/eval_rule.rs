//! Eval rules: they run an evaluator on every new trace that matches a filter.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{
    Timestamp,
    enums::words,
    eval::{EvaluationStatus, EvaluatorType, ModelTier},
    trace::RawObject,
};

/// Selects the traces that an eval rule evaluates; absent fields do not restrict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RuleFilter {
    /// Traces of this model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Traces with this tag: `key` or `key:value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Traces with this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Traces with an error, or without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<bool>,
    /// Traces with a span of this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_type: Option<String>,
    /// Unknown fields. The server rejects them: a rule with a misspelt condition would evaluate, and
    /// cost, more than intended.
    #[serde(flatten, skip_serializing_if = "Map::is_empty")]
    #[cfg_attr(feature = "schema", schema(ignore))]
    pub unknown: Map<String, Value>,
}

impl RuleFilter {
    /// Returns whether the filter selects all traces.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Formats the filter as terms: `model:gpt-4o error:true`.
impl fmt::Display for RuleFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.error.map(|it| it.to_string());
        let terms = [
            ("model", &self.model),
            ("name", &self.name),
            ("tag", &self.tag),
            ("error", &error),
            ("type", &self.span_type),
        ];
        let mut blank = "";
        for (name, value) in terms.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            let quote = if value.contains(char::is_whitespace) { "\"" } else { "" };
            write!(f, "{blank}{name}:{quote}{value}{quote}")?;
            blank = " ";
        }
        Ok(())
    }
}

/// Runs an evaluator on each new trace of a project that matches a filter.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EvalRule {
    /// Identifies the rule.
    pub id: Uuid,
    /// The project whose traces the rule evaluates.
    pub project_id: Uuid,
    /// The evaluator that runs.
    pub metric_name: String,
    /// Type of the evaluator.
    pub evaluator_type: EvaluatorType,
    /// Options of the evaluator.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub config: RawObject,
    /// Whether the rule fires on new traces.
    pub enabled: bool,
    /// Tier of the judge model.
    pub model_tier: ModelTier,
    /// The smallest score drop after a control action that raises an alert; with null or 0.0, every drop
    /// does.
    pub min_score_drop: Option<f64>,
    /// Selects the traces; an empty filter selects all traces of the project.
    pub filter: RuleFilter,
    /// Share of the matching traces that is evaluated, 0 to 1; the trace's ID decides.
    pub sample_rate: f64,
    /// Why an enabled rule does not run; null when it runs. One of [`PauseReason`]; later versions may
    /// return other codes.
    #[cfg_attr(feature = "schema", schema(value_type = Option<PauseReason>))]
    pub paused_reason: Option<String>,
    /// What happened and what to do about it; null when the rule runs.
    #[serde(default)]
    pub paused_detail: Option<String>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

impl EvalRule {
    /// Returns a sentence that says why an enabled rule does not run; `None` when it runs.
    pub fn paused(&self) -> Option<String> {
        let reason = self.paused_reason.as_deref()?;
        Some(PauseReason::describe(reason, self.paused_detail.as_deref()))
    }
}

words! {
    /// The reason why an enabled eval rule does not run.
    PauseReason {
        /// The plan requires the tenant's own judge, and no credential for one is stored.
        ProviderCredentialsMissing = "provider_credentials_missing",
        /// The stored key of the judge cannot be decrypted.
        ProviderCredentialsUnreadable = "provider_credentials_unreadable",
        /// The plan uses the platform's judge, and the operator has configured none.
        JudgeNotConfigured = "judge_not_configured",
        /// The judge's provider refuses the key, the account or the model.
        JudgeRejected = "judge_rejected",
        /// The code evaluator repeatedly exceeded its processor time.
        EvaluatorTooSlow = "evaluator_too_slow",
        /// The plan allows fewer rules than the tenant has.
        EvalRulesQuotaExceeded = "eval_rules_quota_exceeded",
        /// The rule's evaluator was deleted.
        EvaluatorMissing = "evaluator_missing",
    }
}

impl PauseReason {
    /// Returns the text for people: the server's sentence, else one for the code, else the code itself.
    pub fn describe(code: &str, detail: Option<&str>) -> String {
        match (detail, code.parse::<Self>()) {
            (Some(detail), _) if !detail.is_empty() => detail.to_owned(),
            (_, Ok(reason)) => reason.sentence().to_owned(),
            (_, Err(_)) => code.to_owned(),
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::ProviderCredentialsMissing => "no credential for a judge is stored",
            Self::ProviderCredentialsUnreadable => "the stored key of the judge can't be decrypted",
            Self::JudgeNotConfigured => "the operator of the server configured no judge",
            Self::JudgeRejected => "the judge's provider refuses the key, the account or the model",
            Self::EvaluatorTooSlow => "the code evaluator repeatedly exceeded its processor time",
            Self::EvalRulesQuotaExceeded => "the plan allows fewer eval rules than exist",
            Self::EvaluatorMissing => "the evaluator of the rule was deleted",
        }
    }
}

/// Body of `POST /v1/eval-rules`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewEvalRule {
    /// The project whose traces the rule evaluates.
    pub project_id: Uuid,
    /// The evaluator that runs.
    pub metric_name: String,
    /// `llm` or `rule`. Required. A string, so that an unknown word is a validation error (422).
    #[cfg_attr(feature = "schema", schema(value_type = EvaluatorType))]
    pub evaluator_type: String,
    /// Options of the evaluator.
    #[serde(default)]
    pub config: Option<Map<String, Value>>,
    /// Default: true.
    #[serde(default)]
    pub enabled: Option<bool>,
    /// Default: `cheap`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<ModelTier>))]
    pub model_tier: Option<String>,
    /// 0 or greater; default 0.0. Null is kept and means the same.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::object::given")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    pub min_score_drop: Option<Option<f64>>,
    /// Selects the traces; default: all traces of the project.
    #[serde(default)]
    pub filter: Option<RuleFilter>,
    /// 0 to 1; default 1.
    #[serde(default)]
    pub sample_rate: Option<f64>,
}

/// Body of `PATCH /v1/eval-rules/{id}`. Absent fields keep their values.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EvalRuleChange {
    /// The project whose traces the rule evaluates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<Uuid>,
    /// The evaluator that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric_name: Option<String>,
    /// Type of the evaluator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<EvaluatorType>))]
    pub evaluator_type: Option<String>,
    /// Replaces all options of the evaluator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Map<String, Value>>,
    /// Whether the rule fires on new traces. Enabling a paused rule resumes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Tier of the judge model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<ModelTier>))]
    pub model_tier: Option<String>,
    /// 0 or greater; null resets it to the platform's default.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::object::given")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    pub min_score_drop: Option<Option<f64>>,
    /// Replaces the whole filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<RuleFilter>,
    /// Share of the matching traces that is evaluated, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<f64>,
}

/// A page of eval rules, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EvalRuleList {
    /// The rules.
    pub eval_rules: Vec<EvalRule>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

words! {
    /// The decision of an eval rule for a trace.
    Decision {
        /// The rule fired: it queued an evaluation.
        Queued = "queued",
        /// The trace does not match the filter, or belongs to another project.
        Filtered = "filtered",
        /// The trace is not in the sample.
        SampledOut = "sampled_out",
        /// The monthly quota of evaluations was used up.
        Quota = "quota",
        /// The rule was disabled, or did not exist, when the trace became ready.
        Disabled = "disabled",
        /// The rule was paused.
        Paused = "paused",
        /// The trace is not ready yet.
        NotReady = "not_ready",
        /// The rule had already evaluated the trace.
        Duplicate = "duplicate",
    }
}

/// Why a rule fired on a trace, or its skip reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RuleDecision {
    /// The rule.
    pub rule_id: Uuid,
    /// The trace.
    pub trace_id: Uuid,
    /// The decision.
    pub decision: Decision,
    /// Explains the decision and what to do about it.
    pub detail: String,
    /// The evaluation that the rule queued.
    pub evaluation_id: Option<Uuid>,
    /// Time of the decision; null when it is computed for this response.
    pub decided_at: Option<Timestamp>,
}

/// A page of decisions, newest trace first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RuleDecisionList {
    /// The decisions.
    pub decisions: Vec<RuleDecision>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// Body of `POST /v1/eval-rules/{id}/test`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewRuleTest {
    /// The trace to evaluate.
    pub trace_id: Uuid,
}

/// Result of an eval rule for one trace; nothing is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RuleTest {
    /// The trace.
    pub trace_id: Uuid,
    /// The decision that the rule would make if the trace were ingested now.
    pub decision: Decision,
    /// Explains the decision.
    pub detail: String,
    /// `complete` or `failed`.
    pub status: EvaluationStatus,
    /// 0.0 (worst) to 1.0 (best).
    pub score: Option<f64>,
    /// `pass`, `warn`, `fail`, or a label of the evaluator's scale.
    pub label: Option<String>,
    /// The evaluator's explanation of the score.
    pub reasoning: Option<String>,
    /// Why there is no score and what to do about it.
    pub error: Option<String>,
    /// The evaluator and its version.
    pub evaluator_version: String,
    /// The judge model.
    pub judge_model: Option<String>,
    /// Prompt tokens of the judge.
    pub prompt_tokens: Option<i64>,
    /// Completion tokens of the judge.
    pub completion_tokens: Option<i64>,
    /// Cost of the judge in US dollars.
    pub cost: Option<f64>,
}

/// Body of `POST /v1/eval-rules/{id}/backfill`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewBackfill {
    /// Traces that started at this time or later.
    #[serde(default)]
    pub from: Option<Timestamp>,
    /// Traces that started at this time or earlier.
    #[serde(default)]
    pub to: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paused_rule_is_described_by_detail_or_else_by_code() {
        assert_eq!(
            PauseReason::describe("judge_rejected", Some("openai answered 401")),
            "openai answered 401"
        );
        let sentence = PauseReason::describe("provider_credentials_missing", None);
        assert_eq!(sentence, "no credential for a judge is stored");
        assert_eq!(PauseReason::describe("a_code_of_later", None), "a_code_of_later");
    }

    #[test]
    fn rule_filter_displays_as_filter_terms() {
        assert_eq!(RuleFilter::default().to_string(), "");
        let filter = RuleFilter {
            model: Some("gpt-4o".into()),
            tag: Some("env:prod".into()),
            name: Some("plan trip".into()),
            error: Some(false),
            span_type: Some("llm".into()),
            unknown: Map::new(),
        };
        assert_eq!(filter.to_string(), "model:gpt-4o name:\"plan trip\" tag:env:prod error:false type:llm");
    }
}
