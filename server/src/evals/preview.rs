//! Evaluates a trace during a request, without storing the result.

use std::sync::Arc;

use api::{EvaluatorType, Plan};
use store::{
    evaluations::EvaluationResult,
    quotas::{self, Quota, month},
};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{
    code_evaluation::{PreparedEvaluator, missing_subject_message, to_result},
    evaluation_request::{EvaluationRequest, missing_judge, quota_exceeded},
    llm_evaluation::{self, JudgeCall, JudgeCallResult},
    replaced_call::ReplacedCall,
    subject_reader::{self, SubjectLookup},
};
use crate::{
    access::plans::monthly_limit,
    app::App,
    error::{Result, stopping},
};

/// Evaluates a trace. An LLM evaluation uses the monthly quota, which is restored if there is no
/// verdict, even if the client disconnects meanwhile.
///
/// # Errors
///
/// Fails with `provider_credentials_missing`, `judge_not_configured` or `eval_quota_exceeded`.
pub async fn evaluate(
    app: &Arc<App>,
    tenant: Uuid,
    plan: Plan,
    request: EvaluationRequest,
    trace: Uuid,
) -> Result<EvaluationResult> {
    let (sender, receiver) = oneshot::channel();
    let task = {
        let app = Arc::clone(app);
        async move { _ = sender.send(run(&app, tenant, plan, &request, (trace, None)).await) }
    };
    app.spawn(task);
    receiver.await.map_err(|_| anyhow::anyhow!("an evaluation was interrupted"))?
}

/// Evaluates a trace like [`evaluate`], in the caller's task. A call may stand for a recorded one of the trace.
///
/// # Errors
///
/// Fails like [`evaluate`].
pub async fn run(
    app: &App,
    tenant: Uuid,
    plan: Plan,
    request: &EvaluationRequest,
    (trace, replaced): (Uuid, Option<&ReplacedCall>),
) -> Result<EvaluationResult> {
    let Some(tier) = request.tier.filter(|_| request.kind == EvaluatorType::Llm) else {
        return run_code_evaluator(app, tenant, request, trace, replaced).await;
    };
    let (evaluator, config) = (&request.evaluator, &request.config);
    let judge = app.judge.select(tenant, plan, evaluator.preferred_provider(), tier).await?;
    let judge = judge.map_err(|it| missing_judge(&it))?;
    let (quota, month) = (Quota::LlmEvaluations, month(app.clock.now()));
    let txn = app.db.begin().await?;
    if quotas::reserve(&txn, tenant, month, quota, monthly_limit(quota, plan), 1).await? == 0 {
        return Err(quota_exceeded(plan));
    }
    txn.commit().await?;
    let call = JudgeCall { evaluator, config, judge: &judge, replaced };
    let result = llm_evaluation::call_judge(app, tenant, trace, None, &call).await;
    let end = result.map(|it| match it {
        JudgeCallResult::End(end) | JudgeCallResult::Later { end, .. } | JudgeCallResult::Broken(end) => end,
        JudgeCallResult::Waiting { why, .. } => EvaluationResult::failed(format!("{why}; try again shortly")),
    });
    if end.as_ref().map_or(true, |it| it.verdict.is_err()) {
        let txn = app.db.begin().await?;
        quotas::release(&txn, tenant, month, quota, 1).await?;
        txn.commit().await?;
    }
    end
}

async fn run_code_evaluator(
    app: &App,
    tenant: Uuid,
    request: &EvaluationRequest,
    trace: Uuid,
    replaced: Option<&ReplacedCall>,
) -> Result<EvaluationResult> {
    // Acquired before the trace is read, so that waiting requests hold no texts.
    let permit = app.code_runner.request_permit(tenant).await?;
    let mut subject = match subject_reader::read(&app.db, tenant, trace, None, false).await? {
        SubjectLookup::Subject(subject) => subject,
        lookup => return Ok(EvaluationResult::failed(missing_subject_message(&lookup))),
    };
    if let Some(replaced) = replaced {
        replaced.apply(&mut subject);
    }
    let config_json = serde_json::to_string(&request.config).map_err(anyhow::Error::from)?;
    let prepared = PreparedEvaluator { evaluator: request.evaluator.clone(), config_json };
    let compiled = Arc::clone(&app.compiled_evaluators);
    let end = permit.run(move || prepared.evaluate(tenant, &compiled, &subject)).await;
    to_result(end).ok_or_else(stopping)
}
