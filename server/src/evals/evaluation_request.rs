//! Evaluations on demand: validates the request, and stores the evaluation with its job.

use api::{
    ErrorCode, EvaluatorType, Plan,
    eval::{ModelTier, NewEvaluation},
};
use entities::{evaluation, job};
use store::{
    Transaction, evaluations,
    quotas::{self, Quota, month},
    traces,
};
use uuid::Uuid;

use super::{code_evaluation, llm_evaluation, rules};
use crate::{
    access::plans::monthly_limit,
    app::App,
    code_runner::TaskFailure,
    error::{Error, Problem, Result, not_found, problem, stopping},
    evaluator::{Config, Evaluator},
    judging::NoJudge,
};

/// Maximum size of a configuration in bytes.
pub const MAX_CONFIG_BYTES: usize = 256 * 1024;

/// A validated request for an evaluation.
pub struct EvaluationRequest {
    /// The evaluator.
    pub evaluator: Evaluator,
    /// The type of the evaluator.
    pub kind: EvaluatorType,
    /// The options of the evaluator.
    pub config: Config,
    /// The judge tier; `None` for type `rule`.
    pub tier: Option<ModelTier>,
}

/// Converts an unfinished compilation to an error.
pub fn compile_failure(field: &str, why: TaskFailure) -> Error {
    match why {
        TaskFailure::OutOfTime => {
            let message = "takes too long to be compiled: use fewer or smaller patterns and schemas";
            Problem::field(field, message).into()
        }
        TaskFailure::Stopping => stopping(),
        TaskFailure::Panicked => anyhow::anyhow!("compiling an evaluator panicked").into(),
    }
}

impl EvaluationRequest {
    /// Validates a request, as far as that is possible without a trace or a judge.
    ///
    /// # Errors
    ///
    /// Fails with `validation_failed` and all invalid fields.
    pub async fn validate(
        app: &App,
        tenant: Uuid,
        metric: &str,
        kind: Option<&str>,
        config: Option<Config>,
        tier: Option<&str>,
    ) -> Result<Self> {
        let Some(evaluator) = rules::find_evaluator(app, tenant, metric).await? else {
            let shown: String = metric.chars().take(100).collect();
            let message = format!("there is no evaluator `{shown}`; GET /v1/evaluators lists them");
            return Err(Problem::field("metric_name", message).into());
        };
        let config = config.unwrap_or_default();
        let tier = tier.map(str::parse::<ModelTier>).transpose();
        let tier = tier.map_err(|it| Problem::field("model_tier", it.to_string()))?;
        let kind = evaluator.select_type(kind, &config)?;
        if serde_json::to_vec(&config).map_or(0, |it| it.len()) > MAX_CONFIG_BYTES {
            return Err(Problem::field("config", format!("is larger than {MAX_CONFIG_BYTES} bytes")).into());
        }
        if evaluator.is_quick_to_check(&config) {
            evaluator.check(kind, &config)?;
        } else {
            let (evaluator, config) = (evaluator.clone(), config.clone());
            let permit = app.code_runner.request_permit(tenant).await?;
            let checked = permit.run(move || evaluator.check(kind, &config)).await;
            checked.map_err(|why| compile_failure("config", why))??;
        }
        let tier = (kind == EvaluatorType::Llm).then(|| tier.unwrap_or(ModelTier::Cheap));
        Ok(Self { evaluator, kind, config, tier })
    }

    /// Checks that a judge is available, if one is needed.
    ///
    /// # Errors
    ///
    /// Fails with `provider_credentials_missing` or `judge_not_configured`, with what to do.
    pub async fn require_judge(&self, app: &App, tenant: Uuid, plan: Plan) -> Result<()> {
        let Some(tier) = self.tier else { return Ok(()) };
        let judge = app.judge.select(tenant, plan, self.evaluator.preferred_provider(), tier).await?;
        judge.map(drop).map_err(|it| missing_judge(&it))
    }

    /// Returns the row of an evaluation on demand.
    pub fn row(&self, tenant: Uuid, trace: Uuid, project: Uuid, now: i64) -> evaluation::Model {
        evaluation::Model {
            metric_name: self.evaluator.name().to_owned(),
            evaluator_type: self.kind.as_str().to_owned(),
            evaluator_version: self.evaluator.version(),
            model_tier: self.tier.map(|it| it.as_str().to_owned()),
            quota_month: (self.kind == EvaluatorType::Llm).then(|| month(now)),
            ..evaluations::pending_row(tenant, trace, project, now)
        }
    }
}

/// Creates one evaluation on demand.
///
/// # Errors
///
/// Fails with an error of the request, `not_found` or `eval_quota_exceeded`.
pub async fn create(app: &App, tenant: Uuid, plan: Plan, new: NewEvaluation) -> Result<evaluation::Model> {
    let NewEvaluation { trace_id, metric_name, evaluator_type, config, model_tier, span_id } = new;
    let (kind, tier) = (evaluator_type.as_deref(), model_tier.as_deref());
    let request = EvaluationRequest::validate(app, tenant, &metric_name, kind, config, tier).await?;
    if !traces::exists(&app.db, tenant, trace_id).await? {
        return Err(not_found("trace"));
    }
    if let Some(span) = span_id
        && traces::some_spans(&app.db.primary(), tenant, &[(trace_id, span)]).await?.is_empty()
    {
        return Err(problem(ErrorCode::NotFound, "the trace has no span with this ID"));
    }
    request.require_judge(app, tenant, plan).await?;
    let now = app.clock.now();
    let txn = app.db.begin().await?;
    // Locked, so that it is not deleted while the evaluation is inserted.
    let trace = traces::lock(&txn, tenant, trace_id).await?.ok_or_else(|| not_found("trace"))?;
    let config = serde_json::to_string(&request.config).map_err(anyhow::Error::from)?;
    let row = evaluation::Model {
        span_id,
        config: Some(config),
        ..request.row(tenant, trace_id, trace.project_id, now)
    };
    if let Some(month) = row.quota_month {
        let (quota, limit) = (Quota::LlmEvaluations, monthly_limit(Quota::LlmEvaluations, plan));
        if quotas::reserve(&txn, tenant, month, quota, limit, 1).await? == 0 {
            return Err(quota_exceeded(plan));
        }
    }
    enqueue(&txn, vec![row.clone()], now).await?;
    txn.commit().await?;
    Ok(row)
}

/// Inserts evaluations of one tenant with their jobs. Returns how many are new.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn enqueue(
    txn: &Transaction,
    rows: Vec<evaluation::Model>,
    now: i64,
) -> Result<usize, store::DbError> {
    let mut jobs: Vec<job::Model> = Vec::new();
    let mut code_evaluations = Vec::new();
    for row in &rows {
        if row.evaluator_type == EvaluatorType::Llm.as_str() {
            jobs.push(llm_evaluation::job(row.tenant_id, row.id, now));
        } else {
            code_evaluations.push((row.tenant_id, row.id));
        }
    }
    if let Some((tenant, _)) = code_evaluations.first().copied() {
        let ids: Vec<Uuid> = code_evaluations.into_iter().map(|it| it.1).collect();
        jobs.extend(
            ids.chunks(code_evaluation::MAX_EVALUATIONS_PER_JOB)
                .map(|it| code_evaluation::job(tenant, it.to_vec(), now)),
        );
    }
    let added = evaluations::add(txn, rows).await?;
    queue::enqueue_all(txn, jobs).await?;
    Ok(added)
}

/// Returns the error for a missing judge.
pub fn missing_judge(missing: &NoJudge) -> Error {
    let code = match missing {
        NoJudge::CredentialsMissing | NoJudge::Sealed => ErrorCode::ProviderCredentialsMissing,
        NoJudge::NotConfigured => ErrorCode::JudgeNotConfigured,
    };
    problem(code, missing.to_string())
}

/// Returns the error for an exhausted quota of LLM evaluations.
pub fn quota_exceeded(plan: Plan) -> Error {
    problem(ErrorCode::EvalQuotaExceeded, quota_exceeded_message(plan))
}

/// Returns the message for an exhausted quota of LLM evaluations.
pub fn quota_exceeded_message(plan: Plan) -> String {
    let limit = monthly_limit(Quota::LlmEvaluations, plan).unwrap_or_default();
    format!(
        "the plan {plan} has {limit} LLM evaluations per month, which are used up; evaluators of type rule use none"
    )
}
