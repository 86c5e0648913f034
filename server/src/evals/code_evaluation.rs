//! Executes code evaluators, several evaluations at a time.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use entities::{evaluation, job};
use evaluators::{CompiledEvaluator, Subject};
use queue::{Job, JobResult, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use store::evaluations::{self, EvaluationResult, JudgeUsage};
use uuid::Uuid;

use super::{
    end, rules,
    subject_reader::{self, SubjectLookup},
};
use crate::{
    app::App,
    code_runner::{MAX_TASK_TIME, TaskFailure},
    error::{Error, Result},
    evaluator::{CompiledEvaluators, Evaluator},
    pools,
};

/// Interval in microseconds at which collected verdicts are stored.
const STORE_INTERVAL_MICROS: i64 = 1_000_000;
/// Maximum number of evaluations per job.
pub const MAX_EVALUATIONS_PER_JOB: usize = 64;
/// Maximum number of workers that may be lost while executing an evaluation.
pub const MAX_LOST_WORKERS: i32 = 3;
/// Error of an evaluation whose evaluator panicked.
const PANIC_MESSAGE: &str =
    "the evaluator crashed on this trace, which is a bug of this server; please report it";

/// Error of an evaluation that failed for another internal reason.
const FAULT_MESSAGE: &str = "the server could not read the trace or the evaluator; its log has the reason; please report it to the operator";

/// Waiting evaluations by code.
#[derive(Debug, Serialize, Deserialize)]
pub struct EvaluateByCode {
    /// The evaluations.
    pub evaluations: Vec<Uuid>,
}

impl Job for EvaluateByCode {
    // Stored jobs have this name.
    const KIND: &'static str = "evaluate_by_rule";
    const POOL: &'static WorkerPool = &pools::EVALUATIONS_POOL;
}

/// Returns the job that executes these evaluations.
pub fn job(tenant: Uuid, evaluations: Vec<Uuid>, now: i64) -> job::Model {
    new_job(tenant, &EvaluateByCode { evaluations }, now, now)
}

impl RunJob<App> for EvaluateByCode {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        match work(app, row.tenant_id, &self.evaluations).await {
            Ok(None) => JobResult::Done,
            Ok(Some(until)) => JobResult::Snooze { until },
            // The evaluations are retried after any error.
            Err(error) => {
                tracing::warn!(tenant = %row.tenant_id, %error, "code evaluations are postponed");
                JobResult::Snooze { until: app.clock.now() + 5_000_000 }
            }
        }
    }
}

/// Runs the evaluations that are possible now. Returns when the others may run, if any are left.
async fn work(app: &Arc<App>, tenant: Uuid, ids: &[Uuid]) -> Result<Option<i64>> {
    // A tenant that has used up its processor time leaves the worker to other tenants.
    if let Some(until) = app.code_runner.exhausted_until(tenant) {
        return Ok(Some(until));
    }
    let rows = evaluations::start(&app.db, tenant, ids).await?;
    let outcome = execute(app, tenant, ids.len(), rows.clone()).await;
    if outcome.is_err() {
        // No worker was lost, so the claims do not count.
        for row in &rows {
            evaluations::return_to_pending(&app.db, tenant, row, None).await?;
        }
    }
    outcome
}

/// Executes claimed evaluations of a job with `job_size` evaluations, and stores the results. Returns
/// the others to the queue, and the time at which they may run.
async fn execute(
    app: &Arc<App>,
    tenant: Uuid,
    job_size: usize,
    rows: Vec<evaluation::Model>,
) -> Result<Option<i64>> {
    let mut by_subject: BTreeMap<(Uuid, Option<Uuid>), Vec<evaluation::Model>> = BTreeMap::new();
    let mut results = Vec::with_capacity(rows.len());
    let mut prepared_evaluators = PreparedEvaluators::default();
    for row in rows {
        match (lost_workers(&row), job_size) {
            (it, _) if it >= MAX_LOST_WORKERS => results.push((row, lost_workers_failure(it))),
            // One of these may crash its worker: from now on each is executed alone.
            (1.., 2..) => requeue_alone(app, &row).await?,
            _ => by_subject.entry((row.trace_id, row.span_id)).or_default().push(row),
        }
    }
    let mut stored_at = app.clock.now();
    let mut waiting = by_subject.into_iter();
    while let Some(((trace, span), rows)) = waiting.next() {
        // One trace at a time: its texts may be many megabytes.
        let subject = match subject_reader::read(&app.db, tenant, trace, span, false).await {
            Ok(SubjectLookup::Subject(subject)) => Arc::<Subject>::from(subject),
            Ok(lookup) => {
                results.extend(
                    rows.into_iter()
                        .map(|row| (row, EvaluationResult::failed(missing_subject_message(&lookup)))),
                );
                continue;
            }
            Err(error) => {
                let result = permanent_failure(tenant, error)?;
                results.extend(rows.into_iter().map(|row| (row, result.clone())));
                continue;
            }
        };
        let mut rows = rows.into_iter();
        while let Some(row) = rows.next() {
            let prepared = match prepared_evaluators.prepared(app, &row).await {
                Ok(Ok(prepared)) => prepared,
                Ok(Err(why)) => {
                    results.push((row, EvaluationResult::failed(why)));
                    continue;
                }
                Err(error) => {
                    results.push((row, permanent_failure(tenant, error)?));
                    continue;
                }
            };
            let exhausted = app.code_runner.exhausted_until(tenant);
            let result = match exhausted {
                Some(_) => None,
                None => run_evaluator(app, &row, prepared, Arc::clone(&subject)).await,
            };
            let Some(result) = result else {
                end::store(app, tenant, results).await?;
                let rest = waiting.flat_map(|it| it.1);
                for row in std::iter::once(row).chain(rows).chain(rest) {
                    evaluations::return_to_pending(&app.db, tenant, &row, None).await?;
                }
                return Ok(Some(exhausted.unwrap_or_else(|| app.clock.now())));
            };
            results.push((row, result));
        }
        if app.clock.now() - stored_at > STORE_INTERVAL_MICROS {
            end::store(app, tenant, std::mem::take(&mut results)).await?;
            stored_at = app.clock.now();
        }
    }
    end::store(app, tenant, results).await?;
    Ok(None)
}

/// Runs a code evaluator. Returns `None` when the server stops before there is a verdict.
async fn run_evaluator(
    app: &App,
    row: &evaluation::Model,
    prepared: Arc<PreparedEvaluator>,
    subject: Arc<Subject>,
) -> Option<EvaluationResult> {
    let tenant = row.tenant_id;
    let permit = app.code_runner.permit(tenant).await?;
    let compiled = Arc::clone(&app.compiled_evaluators);
    let result = permit.run(move || prepared.evaluate(tenant, &compiled, &subject)).await;
    let timed_out = matches!(result, Err(TaskFailure::OutOfTime));
    if let Some(rule) = row.rule_id.filter(|it| app.code_runner.is_too_slow(tenant, *it, timed_out))
        && let Err(error) = pause_rule(app, row, rule).await
    {
        tracing::warn!(%tenant, %rule, %error, "an eval rule whose evaluator is too slow could not be paused");
    }
    to_result(result)
}

/// Pauses the eval rule of an evaluation because its evaluator is too slow. A rule that was changed after
/// the evaluation was created is not paused.
async fn pause_rule(app: &App, row: &evaluation::Model, rule: Uuid) -> Result<()> {
    let (tenant, now) = (row.tenant_id, app.clock.now());
    let why = format!("several evaluations in a row failed: {}", timeout_message());
    let txn = app.db.begin().await?;
    let since = now - rules::PAUSE_MICROS;
    if store::eval_rules::pause(&txn, tenant, rule, &why, row.created_at, (since, now)).await? {
        tracing::warn!(%tenant, %rule, why, "an eval rule is paused");
        app.commit(txn).await?;
    }
    Ok(())
}

/// Returns the result of a code evaluation; `None` when the server stopped it.
pub fn to_result(run: Result<EvaluationResult, TaskFailure>) -> Option<EvaluationResult> {
    match run {
        Ok(result) => Some(result),
        Err(TaskFailure::OutOfTime) => Some(EvaluationResult::failed(timeout_message())),
        // A fault of one evaluator must not affect the others.
        Err(TaskFailure::Panicked) => Some(EvaluationResult::failed(PANIC_MESSAGE)),
        Err(TaskFailure::Stopping) => None,
    }
}

fn timeout_message() -> String {
    format!(
        "it took more than {} s of processor time, the most that an evaluation by code may use: simplify its \
         patterns or schemas (repeat less), or evaluate a span with a shorter text",
        MAX_TASK_TIME.as_secs()
    )
}

/// An evaluator with its configuration.
pub struct PreparedEvaluator {
    /// The evaluator.
    pub evaluator: Evaluator,
    /// The configuration as JSON.
    pub config_json: String,
}

impl PreparedEvaluator {
    /// Returns the verdict for a trace. This can take long: it is called on a thread of the
    /// [`CodeRunner`](crate::code_runner::CodeRunner).
    pub fn evaluate(
        &self,
        tenant: Uuid,
        compiled: &CompiledEvaluators,
        subject: &Subject,
    ) -> EvaluationResult {
        self.evaluate_compiled(&self.compile(tenant, compiled), subject)
    }

    /// Returns the compiled evaluator, or why it cannot be compiled. This can take as long as
    /// [`Self::evaluate`].
    pub fn compile(
        &self,
        tenant: Uuid,
        compiled: &CompiledEvaluators,
    ) -> Result<Arc<CompiledEvaluator>, String> {
        compiled.get(tenant, &self.evaluator, &self.config_json)
    }

    /// Returns the verdict of the compiled evaluator, for callers that evaluate several traces.
    pub fn evaluate_compiled(
        &self,
        compiled: &Result<Arc<CompiledEvaluator>, String>,
        subject: &Subject,
    ) -> EvaluationResult {
        let evaluator = match compiled {
            Ok(evaluator) => evaluator,
            Err(why) => return EvaluationResult::failed(why),
        };
        let verdict = evaluator.evaluate(subject).map_err(|it| it.reason);
        let evaluator_version = Some(self.evaluator.version());
        EvaluationResult { evaluator_version, verdict, usage: JudgeUsage::default() }
    }
}

/// Evaluators shared by the evaluations of a job: each configuration is prepared once.
#[derive(Default)]
struct PreparedEvaluators(HashMap<ConfigKey, Result<Arc<PreparedEvaluator>, String>>);

/// Identifies a configuration: an evaluator, a bulk evaluation, a rule.
type ConfigKey = (String, Option<Uuid>, Option<Uuid>);

impl PreparedEvaluators {
    async fn prepared(
        &mut self,
        app: &App,
        row: &evaluation::Model,
    ) -> Result<Result<Arc<PreparedEvaluator>, String>> {
        if row.config.is_some() {
            return Ok(prepare(app, row).await?.map(Arc::new));
        }
        let key = (row.metric_name.clone(), row.bulk_id, row.rule_id);
        if let Some(prepared) = self.0.get(&key) {
            return Ok(prepared.clone());
        }
        let prepared = prepare(app, row).await?.map(Arc::new);
        self.0.insert(key, prepared.clone());
        Ok(prepared)
    }
}

/// Returns the evaluator and configuration of a code evaluation, or an error message if there is none.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn prepare(app: &App, row: &evaluation::Model) -> Result<Result<PreparedEvaluator, String>> {
    let (tenant, metric) = (row.tenant_id, &row.metric_name);
    let Some(config_json) = find_config(app, row).await? else { return Ok(Err(rule_deleted_message())) };
    let Some(evaluator) = rules::find_evaluator(app, tenant, metric).await? else {
        return Ok(Err(evaluator_deleted_message(metric)));
    };
    Ok(Ok(PreparedEvaluator { evaluator, config_json }))
}

/// Returns the configuration of an evaluation as JSON: its own, its bulk evaluation's or its rule's.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn find_config(app: &App, row: &evaluation::Model) -> Result<Option<String>> {
    if let Some(config) = &row.config {
        return Ok(Some(config.clone()));
    }
    if let Some(bulk) = row.bulk_id {
        return Ok(store::bulk_runs::config(app.db.current(), row.tenant_id, bulk).await?);
    }
    let Some(rule) = row.rule_id else { return Ok(Some("{}".to_owned())) };
    Ok(rules::find_rule(app, row.tenant_id, rule).await?.map(|it| it.row.config.clone()))
}

/// Moves an evaluation to a job of its own.
async fn requeue_alone(app: &App, row: &evaluation::Model) -> Result<()> {
    let now = app.clock.now();
    evaluations::return_to_pending(&app.db, row.tenant_id, row, None).await?;
    queue::enqueue_all(&app.db.write, vec![job(row.tenant_id, vec![row.id], now)]).await?;
    Ok(())
}

/// Returns the number of workers that were lost while executing an evaluation.
pub fn lost_workers(row: &evaluation::Model) -> i32 {
    row.attempts.saturating_sub(1).saturating_sub(row.returns)
}

/// Returns the result of an evaluation whose workers were lost too often.
pub fn lost_workers_failure(lost_workers: i32) -> EvaluationResult {
    EvaluationResult::failed(format!(
        "{lost_workers} workers were lost while executing it; create the evaluation again"
    ))
}

/// Returns the result of an evaluation that fails permanently on this server, for example because the
/// stored texts of its trace are damaged. Other evaluations are not affected.
///
/// # Errors
///
/// Returns the error if it is temporary.
pub fn permanent_failure(tenant: Uuid, error: Error) -> Result<EvaluationResult> {
    if error.is_temporary() {
        return Err(error);
    }
    tracing::error!(%tenant, error = format!("{error:#}"), "an evaluation failed");
    Ok(EvaluationResult::failed(FAULT_MESSAGE))
}

/// Returns why a trace cannot be read.
pub fn missing_subject_message(lookup: &SubjectLookup) -> &'static str {
    match lookup {
        SubjectLookup::NoSpan => "the span was deleted",
        _ => evaluations::TRACE_REMOVED_ERROR,
    }
}

/// Returns the message for a deleted evaluator.
pub fn evaluator_deleted_message(metric: &str) -> String {
    format!("the evaluator `{metric}` was deleted")
}

/// Returns the message for a missing configuration.
pub fn rule_deleted_message() -> String {
    "the rule was deleted before the evaluation was executed".to_owned()
}
