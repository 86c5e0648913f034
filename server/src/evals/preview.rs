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
    ask::{EvaluationRequest, exceeded, no_judge},
    by_code::{PreparedEvaluator, absent, finished},
    by_judge::{self, JudgeCall, JudgeCallResult},
    subject::{self, SubjectLookup},
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
    asked: EvaluationRequest,
    trace: Uuid,
) -> Result<EvaluationResult> {
    let (tell, told) = oneshot::channel();
    let task = {
        let app = Arc::clone(app);
        async move { _ = tell.send(judged(&app, tenant, plan, &asked, trace).await) }
    };
    app.spawn(task);
    told.await.map_err(|_| anyhow::anyhow!("an evaluation was interrupted"))?
}

async fn judged(
    app: &App,
    tenant: Uuid,
    plan: Plan,
    asked: &EvaluationRequest,
    trace: Uuid,
) -> Result<EvaluationResult> {
    let Some(tier) = asked.tier.filter(|_| asked.kind == EvaluatorType::Llm) else {
        return by_code(app, tenant, asked, trace).await;
    };
    let (evaluator, config) = (&asked.evaluator, &asked.config);
    let judge = app.judge.choose(tenant, plan, evaluator.prefers(), tier).await?;
    let judge = judge.map_err(|it| no_judge(&it))?;
    let (quota, month) = (Quota::LlmEvaluations, month(app.clock.now()));
    let txn = app.db.begin().await?;
    if quotas::reserve(&txn, tenant, month, quota, monthly_limit(quota, plan), 1).await? == 0 {
        return Err(exceeded(plan));
    }
    txn.commit().await?;
    let question = JudgeCall { evaluator, config, judge: &judge };
    let answer = by_judge::ask(app, tenant, trace, None, &question).await;
    let end = answer.map(|it| match it {
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

async fn by_code(
    app: &App,
    tenant: Uuid,
    asked: &EvaluationRequest,
    trace: Uuid,
) -> Result<EvaluationResult> {
    // Acquired before the trace is read, so that waiting requests hold no texts.
    let turn = app.code.turn_of_request(tenant).await?;
    let subject = match subject::read(&app.db, tenant, trace, None, false).await? {
        SubjectLookup::Subject(subject) => subject,
        gone => return Ok(EvaluationResult::failed(absent(&gone))),
    };
    let text = serde_json::to_string(&asked.config).map_err(anyhow::Error::from)?;
    let prepared = PreparedEvaluator { evaluator: asked.evaluator.clone(), text };
    let compiled = Arc::clone(&app.compiled);
    let end = turn.run(move || prepared.evaluate(tenant, &compiled, &subject)).await;
    finished(end).ok_or_else(stopping)
}
