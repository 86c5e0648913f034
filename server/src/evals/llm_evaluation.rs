//! Executes LLM evaluations.
//!
//! No transaction is open and no trace is locked while the judge is awaited. After a temporary failure,
//! the queue retries later; a permanent failure pauses the eval rule.

use std::{sync::Arc, time::Duration};

use api::{Plan, eval::ModelTier};
use entities::{evaluation, job};
use evaluators::judge::{self, Token};
use queue::{Job, JobResult, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use store::evaluations::{self, EvaluationResult, JudgeUsage};
use uuid::Uuid;

use super::{
    code_evaluation::{
        MAX_LOST_WORKERS, evaluator_deleted_message, find_config, lost_workers, lost_workers_failure,
        missing_subject_message, permanent_failure, rule_deleted_message,
    },
    end,
    replaced_call::ReplacedCall,
    rules,
    subject_reader::{self, SubjectLookup},
};
use crate::{
    app::App,
    error::Result,
    evaluator::{Config, Evaluator},
    judging::{JudgeAccount, JudgeFailure, JudgeFailureKind, SelectedJudge},
    pools,
};

/// Maximum number of attempts with a judge that fails temporarily.
const MAX_JUDGE_ATTEMPTS: i32 = 8;
/// Maximum time in microseconds that an evaluation waits for a failing judge. Waiting behind other
/// evaluations does not count.
const MAX_FAILURE_WAIT_MICROS: i64 = 6 * 3_600_000_000;
/// Delay before a result is stored again after a database failure, doubled each time.
const STORE_RETRY_DELAY: Duration = Duration::from_millis(300);
/// Maximum of that delay.
const MAX_STORE_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Delay in microseconds before the second attempt, doubled each time.
const RETRY_DELAY_MICROS: i64 = 2_000_000;
/// Maximum delay in microseconds, even if the provider requires more.
const MAX_RETRY_DELAY_MICROS: i64 = 600_000_000;

/// A waiting evaluation of type `llm`.
#[derive(Debug, Serialize, Deserialize)]
pub struct EvaluateByJudge {
    /// The evaluation.
    pub evaluation: Uuid,
}

impl Job for EvaluateByJudge {
    const KIND: &'static str = "evaluate_by_judge";
    const POOL: &'static WorkerPool = &pools::JUDGES_POOL;
}

/// Returns the job that executes this evaluation.
pub fn job(tenant: Uuid, evaluation: Uuid, now: i64) -> job::Model {
    new_job(tenant, &EvaluateByJudge { evaluation }, now, now)
}

impl RunJob<App> for EvaluateByJudge {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match work(app, row.tenant_id, self.evaluation).await {
            Ok(outcome) => outcome,
            // The evaluation is retried after any error.
            Err(error) => {
                tracing::warn!(tenant = %row.tenant_id, %error, "an LLM evaluation is postponed");
                JobResult::Snooze { until: app.clock.now() + 5_000_000 }
            }
        }
    }
}

async fn work(app: &App, tenant: Uuid, id: Uuid) -> Result<JobResult> {
    let Some(row) = evaluations::start(&app.db, tenant, &[id]).await?.pop() else {
        return Ok(JobResult::Done);
    };
    let attempted = match lost_workers(&row) {
        it if it >= MAX_LOST_WORKERS => Ok(ExecutionResult::End(lost_workers_failure(it))),
        _ => attempt(app, &row).await,
    };
    let execution =
        match attempted.or_else(|error| permanent_failure(tenant, error).map(ExecutionResult::End)) {
            Ok(execution) => execution,
            // No worker was lost, so the claim does not count.
            Err(error) => {
                evaluations::return_to_pending(&app.db, tenant, &row, None).await?;
                return Err(error);
            }
        };
    match execution {
        ExecutionResult::End(end) => {
            store_result(app, &row, &end).await?;
            Ok(JobResult::Done)
        }
        ExecutionResult::Later { until, usage } => {
            evaluations::return_to_pending(&app.db, tenant, &row, usage).await?;
            Ok(JobResult::Snooze { until })
        }
    }
}

/// Stores a result. The judge was paid for, so a temporary database failure must not lose its verdict.
async fn store_result(app: &App, row: &evaluation::Model, result: &EvaluationResult) -> Result<()> {
    let mut pause = STORE_RETRY_DELAY;
    loop {
        let ends = vec![(row.clone(), result.clone())];
        match end::store(app, row.tenant_id, ends).await {
            Ok(()) => return Ok(()),
            Err(error) if pause > MAX_STORE_RETRY_DELAY => return Err(error),
            Err(error) => {
                tracing::warn!(tenant = %row.tenant_id, %error, "storing an evaluation's result is retried")
            }
        }
        // One more attempt immediately if the server stops.
        pause = if app.pause(pause).await { MAX_STORE_RETRY_DELAY * 2 } else { pause * 2 };
    }
}

/// The result of executing an LLM evaluation.
pub enum ExecutionResult {
    /// Finished, with a verdict or a permanent failure.
    End(EvaluationResult),
    /// Can be retried.
    Later {
        /// Time of the next attempt, microseconds.
        until: i64,
        /// Usage, if a judge was called.
        usage: Option<JudgeUsage>,
    },
}

/// The parameters of a call to a judge.
pub struct JudgeCall<'a> {
    /// The evaluator.
    pub evaluator: &'a Evaluator,
    /// The options of the evaluator.
    pub config: &'a Config,
    /// The judge.
    pub judge: &'a SelectedJudge,
    /// A call that stands for a recorded one.
    pub replaced: Option<&'a ReplacedCall>,
}

async fn attempt(app: &App, row: &evaluation::Model) -> Result<ExecutionResult> {
    let end = |why: String| Ok(ExecutionResult::End(EvaluationResult::failed(why)));
    let (tenant, metric) = (row.tenant_id, &row.metric_name);
    let Some(text) = find_config(app, row).await? else { return end(rule_deleted_message()) };
    let Some(evaluator) = rules::find_evaluator(app, tenant, metric).await? else {
        return end(evaluator_deleted_message(metric));
    };
    let config: Config = serde_json::from_str(&text).map_err(anyhow::Error::from)?;
    let Some(tenant_row) = app.access_cache.tenant(tenant).await? else {
        return end("the tenant was deleted".to_owned());
    };
    let plan: Plan = tenant_row.plan.parse().map_err(anyhow::Error::from)?;
    let tier = row.model_tier.as_deref().and_then(|it| it.parse().ok()).unwrap_or(ModelTier::Cheap);
    let judge = match app.judge.select(tenant, plan, evaluator.preferred_provider(), tier).await? {
        Ok(judge) => judge,
        Err(missing) => return end(missing.to_string()),
    };
    let call = JudgeCall { evaluator: &evaluator, config: &config, judge: &judge, replaced: None };
    let pending = call_judge(app, tenant, row.trace_id, row.span_id, &call);
    let stopping = app.stopping();
    let result = tokio::select! {
        result = pending => result?,
        // Another worker, or this process after a restart, calls the judge again.
        () = stopping.cancelled() => return Ok(ExecutionResult::Later { until: app.clock.now(), usage: None }),
    };
    let now = app.clock.now();
    Ok(match result {
        JudgeCallResult::End(end) => ExecutionResult::End(end),
        JudgeCallResult::Broken(end) => {
            let why = end.verdict.as_ref().err().map_or("", String::as_str);
            if pause_rule(app, row, judge.account(), why).await? || row.asked + 1 >= MAX_JUDGE_ATTEMPTS {
                ExecutionResult::End(end)
            } else {
                // The credential was changed during the call.
                ExecutionResult::Later { until: now, usage: Some(end.usage) }
            }
        }
        JudgeCallResult::Waiting { why, failing_since: Some(since), .. }
            if now.saturating_sub(since.max(row.created_at)) > MAX_FAILURE_WAIT_MICROS =>
        {
            ExecutionResult::End(EvaluationResult::failed(format!(
                "{why}; the evaluation has waited for {} hours",
                MAX_FAILURE_WAIT_MICROS / 3_600_000_000
            )))
        }
        JudgeCallResult::Waiting { wait, .. } => ExecutionResult::Later {
            until: now + wait.unwrap_or(RETRY_DELAY_MICROS).clamp(RETRY_DELAY_MICROS, MAX_RETRY_DELAY_MICROS),
            usage: None,
        },
        JudgeCallResult::Later { wait, end } if row.asked + 1 < MAX_JUDGE_ATTEMPTS => {
            let backoff = RETRY_DELAY_MICROS << row.asked.clamp(0, 20);
            let until = now + wait.unwrap_or(0).max(backoff).min(MAX_RETRY_DELAY_MICROS);
            ExecutionResult::Later { until, usage: Some(end.usage) }
        }
        JudgeCallResult::Later { end, .. } => {
            let verdict = end.verdict.map_err(|why| format!("{why} (after {MAX_JUDGE_ATTEMPTS} attempts)"));
            ExecutionResult::End(EvaluationResult { verdict, ..end })
        }
    })
}

/// The result of one call to a judge.
pub enum JudgeCallResult {
    /// A verdict, or a permanent failure.
    End(EvaluationResult),
    /// Not called: the circuit breaker is open, or too many requests wait.
    Waiting {
        /// Time to wait in microseconds, if known.
        wait: Option<i64>,
        /// The reason, as a sentence.
        why: String,
        /// Start of the judge's failure in microseconds, if it fails.
        failing_since: Option<i64>,
    },
    /// A temporary failure.
    Later {
        /// The delay that the provider requires, in microseconds.
        wait: Option<i64>,
        /// The result if there is no further attempt.
        end: EvaluationResult,
    },
    /// A permanent failure until a person changes the credential.
    Broken(EvaluationResult),
}

/// Calls a judge for a trace, or one span of it.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn call_judge(
    app: &App,
    tenant: Uuid,
    trace: Uuid,
    span: Option<Uuid>,
    call: &JudgeCall<'_>,
) -> Result<JudgeCallResult> {
    let JudgeCall { evaluator, config, judge, replaced } = *call;
    let instructions = match evaluator.instructions() {
        Ok(instructions) => instructions,
        Err(why) => return Ok(JudgeCallResult::End(EvaluationResult::failed(why))),
    };
    // A long trace is not read for a judge that cannot be called now.
    if let Err(failure) = app.judge.would_admit(judge) {
        return Ok(classify_failure(evaluator, failure));
    }
    let turns = instructions.shows_turns();
    let mut subject = match subject_reader::read(&app.db, tenant, trace, span, turns).await? {
        SubjectLookup::Subject(subject) => subject,
        lookup => {
            return Ok(JudgeCallResult::End(EvaluationResult::failed(missing_subject_message(&lookup))));
        }
    };
    if let Some(replaced) = replaced {
        replaced.apply(&mut subject);
    }
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|it| anyhow::anyhow!("no random numbers: {it}"))?;
    let prompt = match judge::build_request(&instructions, &subject, config, &Token::new(bits)) {
        Ok(prompt) => prompt,
        Err(missing) => return Ok(JudgeCallResult::End(EvaluationResult::failed(missing.reason))),
    };
    drop(subject);
    Ok(match app.judge.ask(judge, &prompt).await {
        Ok(it) => {
            let evaluator_version = Some(evaluator.version());
            JudgeCallResult::End(EvaluationResult {
                evaluator_version,
                verdict: Ok(it.verdict),
                usage: it.usage,
            })
        }
        Err(failure) => classify_failure(evaluator, failure),
    })
}

/// Classifies a failure of a judge.
fn classify_failure(evaluator: &Evaluator, failure: JudgeFailure) -> JudgeCallResult {
    let JudgeFailure { kind, message, retry_after, failing_since, usage } = failure;
    let wait = retry_after.and_then(|it| i64::try_from(it.as_micros()).ok());
    let evaluator_version = Some(evaluator.version());
    let end = |why| EvaluationResult { evaluator_version, verdict: Err(why), usage: *usage };
    match kind {
        JudgeFailureKind::Waiting => JudgeCallResult::Waiting { wait, why: message, failing_since },
        JudgeFailureKind::Later => JudgeCallResult::Later { wait, end: end(message) },
        JudgeFailureKind::Broken => JudgeCallResult::Broken(end(message)),
        JudgeFailureKind::Refused | JudgeFailureKind::Unreadable => JudgeCallResult::End(end(message)),
    }
}

/// Whether a judge is still the stored one. The lock makes concurrent changes of the credential wait.
async fn is_current_judge(txn: &store::Transaction, who: JudgeAccount) -> Result<bool> {
    let JudgeAccount::Tenant(tenant, provider, updated_at) = who else { return Ok(true) };
    let row = store::credentials::lock(txn, tenant, provider).await?;
    Ok(row.is_some_and(|it| it.updated_at == updated_at))
}

/// Pauses the eval rule of an evaluation whose judge fails permanently. Returns false if the judge or
/// the rule was changed meanwhile, because the failure does not concern the new version.
async fn pause_rule(app: &App, row: &evaluation::Model, judge: JudgeAccount, why: &str) -> Result<bool> {
    let tenant = row.tenant_id;
    let txn = app.db.begin().await?;
    if !is_current_judge(&txn, judge).await? {
        return Ok(false);
    }
    let Some(rule) = row.rule_id else { return Ok(true) };
    let now = app.clock.now();
    // A rule that was changed since may use another judge.
    let asked_at = row.created_at;
    if store::eval_rules::pause(&txn, tenant, rule, why, asked_at, (now - rules::PAUSE_MICROS, now)).await? {
        tracing::warn!(%tenant, %rule, why, "an eval rule is paused");
        app.commit(txn).await?;
    }
    Ok(true)
}
