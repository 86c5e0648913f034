//! The calls of a replay test: the stored model calls of the baseline, with the candidate's template as system message.

use api::{ErrorCode, Plan, SpanType, control::ActionConfig};
use entities::{prompt_deployment, prompt_replay, span};
use serde_json::{Map, Value};
use store::{
    new_id,
    prompt_tests::{self, RuleScores},
    traces::PackedSpans,
};
use uuid::Uuid;

use super::state::TestSettings;
use crate::{
    access::Caller,
    app::App,
    control::requests::last_call,
    error::{Error, Problem, Result, problem},
    evals::evaluation_request::EvaluationRequest,
    providers::{chat::ChatRequest, judge::JudgeEndpoint},
    remediation::{credential, request},
};

/// Status of a pair whose call has not begun.
pub const PENDING_PAIR: &str = "pending";
/// Status of a pair whose call has begun.
pub const RUNNING_PAIR: &str = "running";
/// Status of a pair with both scores.
pub const COMPLETE_PAIR: &str = "complete";
/// Status of a pair without scores.
pub const FAILED_PAIR: &str = "failed";

/// Traces that are read for each pair that is required, because some recorded no messages.
const TRACES_PER_PAIR: usize = 3;
/// Maximum size in bytes of the recorded texts of a span that are sent again.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// The candidate of a replay test.
#[derive(Clone, Copy)]
pub struct ReplayCandidate<'a> {
    /// The text of the prompt.
    pub template: &'a str,
    /// The model; `None` for the recorded one.
    pub model: Option<&'a str>,
    /// The settings of the test.
    pub settings: &'a TestSettings,
}

/// A call of the candidate, ready to be sent.
pub struct ReplayCall {
    /// The recorded call of the baseline.
    pub original: span::Model,
    /// The request.
    pub request: ChatRequest,
    /// The provider, with the tenant's credential.
    pub endpoint: JudgeEndpoint,
}

/// Why a recorded call cannot be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnusableCall {
    /// The span has no messages, or no model.
    NotRecorded(&'static str),
    /// The tenant has no credential for the model.
    NoCredential(String),
}

impl UnusableCall {
    /// Returns the reason as a sentence.
    pub fn into_message(self) -> String {
        match self {
            Self::NotRecorded(why) => why.to_owned(),
            Self::NoCredential(why) => why,
        }
    }
}

/// Selects the pairs of a new test: the newest traces of the baseline whose last model call can be repeated. They are not
/// stored yet.
///
/// # Errors
///
/// Fails with `validation_failed` if there are too few, or the metric needs a configuration that no eval rule has; with
/// `provider_credentials_missing` without a credential for the model or for the judge.
pub async fn select_pairs(
    app: &App,
    caller: &Caller,
    baseline: &prompt_deployment::Model,
    candidate: ReplayCandidate<'_>,
) -> Result<Vec<prompt_replay::Model>> {
    let (tenant, project) = (caller.tenant_id, baseline.project_id);
    // Up to three traces are read for each pair.
    let _permit = app.read_permit(tenant).await?;
    let metric = &candidate.settings.metric_name;
    test_evaluation(app, tenant, caller.plan, project, metric).await.map_err(metric_error)?;
    let max_pairs = usize::try_from(candidate.settings.min_samples).unwrap_or(usize::MAX);
    let limit = max_pairs.saturating_mul(TRACES_PER_PAIR);
    let version = (baseline.prompt_name.as_str(), baseline.version);
    let mut pairs = Vec::new();
    for trace_id in prompt_tests::tagged_traces(&app.db, tenant, project, version, limit).await? {
        if pairs.len() >= max_pairs {
            break;
        }
        let Some(span) = last_call(app, tenant, trace_id).await?.filter(is_model_call) else { continue };
        let span_id = span.id;
        match prepare(app, span, candidate.template, candidate.model).await? {
            Ok(_) => pairs.push(pair(tenant, trace_id, span_id)),
            Err(UnusableCall::NotRecorded(_)) => {}
            Err(UnusableCall::NoCredential(why)) => {
                return Err(problem(ErrorCode::ProviderCredentialsMissing, why));
            }
        }
    }
    let min_pairs = candidate.settings.min_pairs();
    if (pairs.len() as u64) < min_pairs {
        let message = format!(
            "replay needs at least {min_pairs} traces of version {} with the tags prompt.name and prompt.version, whose \
             model call recorded its messages; there are {}",
            baseline.version,
            pairs.len()
        );
        return Err(Problem::field("mode", message).into());
    }
    Ok(pairs)
}

/// Names the metric in an error of its configuration, which the request does not contain.
fn metric_error(error: Error) -> Error {
    let Error::Problem(problem) = error else { return error };
    let Some(field) = problem.fields.first().filter(|_| problem.code == ErrorCode::ValidationFailed) else {
        return Error::Problem(problem);
    };
    let message = format!(
        "can't be evaluated as it is ({} {}): create an enabled eval rule of this metric in the project, with its options",
        field.field, field.message
    );
    Problem::field("ab.metric_name", message).into()
}

fn is_model_call(span: &span::Model) -> bool {
    span.kind == SpanType::Llm.as_str()
}

fn pair(tenant: Uuid, trace_id: Uuid, span_id: Uuid) -> prompt_replay::Model {
    prompt_replay::Model {
        tenant_id: tenant,
        deployment_id: Uuid::nil(),
        id: new_id(),
        trace_id,
        span_id,
        status: PENDING_PAIR.to_owned(),
        attempts: 0,
        called_at: None,
        baseline_score: None,
        candidate_score: None,
        error: None,
        created_at: 0,
    }
}

/// Rebuilds a recorded call with another system message.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn prepare(
    app: &App,
    original: span::Model,
    template: &str,
    model: Option<&str>,
) -> Result<Result<ReplayCall, UnusableCall>> {
    let (tenant, db) = (original.tenant_id, app.db.primary());
    let spans = std::slice::from_ref(&original);
    let mut packed = PackedSpans::some_of(&db, tenant, spans, Some(original.id), MAX_TEXT_BYTES).await?;
    let texts = packed.take(&original)?;
    let input = texts.input.filter(|it| it.len() <= MAX_TEXT_BYTES);
    let metadata: Map<String, Value> =
        texts.metadata.and_then(|it| serde_json::from_str(&it).ok()).unwrap_or_default();
    let rebuilt = request::rebuild(input.as_deref(), metadata.clone(), &ActionConfig::default());
    let Some(rebuilt) = rebuilt else {
        return Ok(Err(UnusableCall::NotRecorded("the span has no recorded messages of at most 4 MiB")));
    };
    let mut request = rebuilt.chat;
    request::replace_system(&mut request.messages, template);
    let recorded_model = request::recorded_model(&metadata).or(original.model.as_deref());
    // The recorded provider may not have another model.
    let provider_hints = if model.is_none() || model == recorded_model { &metadata } else { &Map::new() };
    let Some(model) = model.or(recorded_model) else {
        return Ok(Err(UnusableCall::NotRecorded("the span has no recorded model")));
    };
    let credentials = app.access_cache.credentials(tenant).await?;
    let (credential, provider) = match credential::select(&credentials, model, provider_hints) {
        Ok(selected) => selected,
        Err(why) => return Ok(Err(UnusableCall::NoCredential(why))),
    };
    let Ok(endpoint) = app.judge.tenant_endpoint(credential, provider, model) else {
        let why = "the stored key of the provider can't be decrypted: an owner must store it again";
        return Ok(Err(UnusableCall::NoCredential(why.to_owned())));
    };
    Ok(Ok(ReplayCall { original, request, endpoint }))
}

/// How the outputs of a test are evaluated.
pub struct TestEvaluation {
    /// The evaluator and its configuration.
    pub request: EvaluationRequest,
    /// The evaluations of stored traces by the same evaluator with the same configuration, if an eval rule makes them.
    pub stored: Option<RuleScores>,
}

/// Returns how a metric is evaluated: as the oldest enabled eval rule of the project does, else without a configuration.
///
/// # Errors
///
/// Fails with an error of the request if that is not possible.
pub async fn test_evaluation(
    app: &App,
    tenant: Uuid,
    plan: Plan,
    project: Uuid,
    metric: &str,
) -> Result<TestEvaluation> {
    let rules = app.access_cache.rule_set(tenant).await?;
    let rule = rules
        .rules
        .iter()
        .find(|it| it.row.enabled && it.row.project_id == project && it.row.metric_name == metric);
    let config = rule.and_then(|it| serde_json::from_str(&it.row.config).ok());
    let (kind, tier) = (rule.map(|it| it.kind.as_str()), rule.map(|it| it.tier.as_str()));
    let request = EvaluationRequest::validate(app, tenant, metric, kind, config, tier).await?;
    request.require_judge(app, tenant, plan).await?;
    let stored = rule.map(|it| RuleScores {
        rule: it.row.id,
        evaluator_version: request.evaluator.version(),
        since: it.row.updated_at,
    });
    Ok(TestEvaluation { request, stored })
}
