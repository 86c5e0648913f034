//! Eval rules: evaluators that run by themselves on every matching trace.

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

/// Which traces of the project a rule judges; what is absent leaves the choice open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RuleFilter {
    /// Of this model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// With this tag: `key`, or `key:value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// With an error, or without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<bool>,
    /// With a span of this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_type: Option<String>,
    /// Members that are none of these. They are refused: a filter that lacks what it was meant to ask
    /// for would judge, and cost, more.
    #[serde(flatten, skip_serializing_if = "Map::is_empty")]
    #[cfg_attr(feature = "schema", schema(ignore))]
    pub unknown: Map<String, Value>,
}

impl RuleFilter {
    /// Whether it leaves every choice open.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The filter as the terms that people write and read: `model:gpt-4o error:true`.
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

/// An eval rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EvalRule {
    /// Its id.
    pub id: Uuid,
    /// The project it applies to.
    pub project_id: Uuid,
    /// The evaluator that runs.
    pub metric_name: String,
    /// How it judges.
    pub evaluator_type: EvaluatorType,
    /// Options of the evaluator.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub config: RawObject,
    /// Whether it fires on new traces.
    pub enabled: bool,
    /// Which judge model.
    pub model_tier: ModelTier,
    /// A drop of the score after a control action that is smaller than this raises no alert; null
    /// and 0.0: any drop does.
    pub min_score_drop: Option<f64>,
    /// Which traces; without members: all of the project.
    pub filter: RuleFilter,
    /// Share of the matching traces that is judged, chosen by the trace's id; 0 to 1.
    pub sample_rate: f64,
    /// Why it does not run though it is enabled; null when it runs. A code: this version answers those
    /// of [`PauseReason`], a later one may answer others.
    #[cfg_attr(feature = "schema", schema(value_type = Option<PauseReason>))]
    pub paused_reason: Option<String>,
    /// What happened and what to do about it, in a sentence; null when it runs.
    #[serde(default)]
    pub paused_detail: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl EvalRule {
    /// Returns in a sentence why the rule does not run although it is enabled; none when it runs.
    pub fn paused(&self) -> Option<String> {
        let reason = self.paused_reason.as_deref()?;
        Some(PauseReason::describe(reason, self.paused_detail.as_deref()))
    }
}

words! {
    /// The reason why an enabled eval rule does not run.
    PauseReason {
        /// The plan needs the tenant's own judge, and no credential for one is stored.
        ProviderCredentialsMissing = "provider_credentials_missing",
        /// The stored key of the judge can't be decrypted.
        ProviderCredentialsUnreadable = "provider_credentials_unreadable",
        /// The plan needs the platform's judge, and the operator configured none.
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
            Self::ProviderCredentialsUnreadable => "the stored key of the judge can't be opened",
            Self::JudgeNotConfigured => "the operator of the server configured no judge",
            Self::JudgeRejected => "the judge's provider refuses the key, the account or the model",
            Self::EvaluatorTooSlow => "the code evaluator repeatedly exceeded its processor time",
            Self::EvalRulesQuotaExceeded => "the plan runs fewer eval rules than there are",
            Self::EvaluatorMissing => "the evaluator of the rule was deleted",
        }
    }
}

/// Body of `POST /v1/eval-rules`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewEvalRule {
    /// The project it applies to.
    pub project_id: Uuid,
    /// The evaluator that runs.
    pub metric_name: String,
    /// `llm` or `rule`. Required. A text, so that an unknown word is a value not allowed.
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
    /// 0 or more; default 0.0. Null stays null, which means the same.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::object::given")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    pub min_score_drop: Option<Option<f64>>,
    /// Which traces; default: all of the project.
    #[serde(default)]
    pub filter: Option<RuleFilter>,
    /// 0 to 1; default 1.
    #[serde(default)]
    pub sample_rate: Option<f64>,
}

/// Body of `PATCH /v1/eval-rules/{id}`: what is absent stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EvalRuleChange {
    /// Another project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<Uuid>,
    /// Another evaluator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric_name: Option<String>,
    /// How it judges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<EvaluatorType>))]
    pub evaluator_type: Option<String>,
    /// Options of the evaluator, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Map<String, Value>>,
    /// Whether it fires. Enabling a paused rule lets it try again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Which judge model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<ModelTier>))]
    pub model_tier: Option<String>,
    /// 0 or more; null: the platform's default.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::object::given")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<f64>))]
    pub min_score_drop: Option<Option<f64>>,
    /// Which traces, the whole filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<RuleFilter>,
    /// 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<f64>,
}

/// A page of eval rules, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EvalRuleList {
    /// The rules.
    pub eval_rules: Vec<EvalRule>,
    /// More rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

words! {
    /// What a rule did with a trace.
    Decision {
        /// It asked for an evaluation.
        Queued = "queued",
        /// The filter does not select the trace, or the trace is of another project.
        Filtered = "filtered",
        /// The sample leaves the trace out.
        SampledOut = "sampled_out",
        /// The month's evaluations were used up.
        Quota = "quota",
        /// The rule was disabled, or not there yet, when the trace was ready.
        Disabled = "disabled",
        /// The rule was paused.
        Paused = "paused",
        /// The trace is not ready yet.
        NotReady = "not_ready",
        /// The rule had judged the trace before.
        Duplicate = "duplicate",
    }
}

/// Why a rule judged a trace, or did not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RuleDecision {
    /// The rule.
    pub rule_id: Uuid,
    /// The trace.
    pub trace_id: Uuid,
    /// What it did.
    pub decision: Decision,
    /// In words, with what to do.
    pub detail: String,
    /// The evaluation that it asked for.
    pub evaluation_id: Option<Uuid>,
    /// When it decided; null for what is worked out when asked.
    pub decided_at: Option<Timestamp>,
}

/// A page of decisions, newest trace first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RuleDecisionList {
    /// The decisions.
    pub decisions: Vec<RuleDecision>,
    /// More rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// Body of `POST /v1/eval-rules/{id}/test`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewRuleTest {
    /// The trace that is judged.
    pub trace_id: Uuid,
}

/// What a rule says of a trace, without anything being stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RuleTest {
    /// The trace.
    pub trace_id: Uuid,
    /// What the rule would do with the trace if it were ingested now.
    pub decision: Decision,
    /// In words.
    pub detail: String,
    /// `complete` or `failed`.
    pub status: EvaluationStatus,
    /// 0.0 to 1.0, where 1.0 is good.
    pub score: Option<f64>,
    /// `pass`, `warn`, `fail`, or a level of the evaluator's own.
    pub label: Option<String>,
    /// Why this score.
    pub reasoning: Option<String>,
    /// Why there is none and what to do.
    pub error: Option<String>,
    /// The evaluator with its version.
    pub evaluator_version: String,
    /// The model that judged.
    pub judge_model: Option<String>,
    /// Tokens that the judge was shown.
    pub prompt_tokens: Option<i64>,
    /// Tokens that the judge answered.
    pub completion_tokens: Option<i64>,
    /// US dollars that the judge cost.
    pub cost: Option<f64>,
}

/// Body of `POST /v1/eval-rules/{id}/backfill`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewBackfill {
    /// Traces started then or later.
    #[serde(default)]
    pub from: Option<Timestamp>,
    /// Traces started then or earlier.
    #[serde(default)]
    pub to: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_is_described_by_detail_then_code() {
        assert_eq!(
            PauseReason::describe("judge_rejected", Some("openai answered 401")),
            "openai answered 401"
        );
        let sentence = PauseReason::describe("provider_credentials_missing", None);
        assert_eq!(sentence, "no credential for a judge is stored");
        assert_eq!(PauseReason::describe("a_code_of_later", None), "a_code_of_later");
    }

    #[test]
    fn a_filter_reads_as_terms() {
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
