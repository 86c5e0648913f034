//! Doing evaluations by code, some at once.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use entities::{evaluation, job};
use evaluators::Subject;
use queue::{Job, Outcome, RunJob, WorkerPool, new_job};
use serde::{Deserialize, Serialize};
use store::evaluations::{self, End, Judged};
use uuid::Uuid;

use super::{
    matching::label,
    rules,
    subject::{self, Found},
};
use crate::{
    app::App,
    code_runner::{MAX_TASK_TIME, Unfinished},
    error::{Error, Result},
    evaluator::{Compiled, Config, Evaluator},
    pools,
};

/// How often collected verdicts are stored, in microseconds.
const STORE_INTERVAL_MICROS: i64 = 1_000_000;
/// Evaluations that one job does.
pub const AT_ONCE: usize = 64;
/// How often a worker may get lost over an evaluation.
pub const LOST: i32 = 3;
/// What an evaluation says whose evaluator panicked.
const BROKE: &str = "the evaluator broke on this trace, which is a fault of this server; please report it";

/// What one says that could not be done for another fault of the server.
const FAULT: &str = "this server could not read what is judged, or by what; its log says why; please report it to whoever operates it";

/// Evaluations of type `rule` that wait.
#[derive(Debug, Serialize, Deserialize)]
pub struct EvaluateByRule {
    /// The evaluations.
    pub evaluations: Vec<Uuid>,
}

impl Job for EvaluateByRule {
    const KIND: &'static str = "evaluate_by_rule";
    const POOL: &'static WorkerPool = &pools::EVALUATIONS;
}

/// The job that does these evaluations.
pub fn job(tenant: Uuid, evaluations: Vec<Uuid>, now: i64) -> job::Model {
    new_job(tenant, &EvaluateByRule { evaluations }, now, now)
}

// Does them.
impl RunJob<App> for EvaluateByRule {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> Outcome {
        match work(app, row.tenant_id, &self.evaluations).await {
            Ok(None) => Outcome::Done,
            Ok(Some(until)) => Outcome::Snooze { until },
            // Whatever it was, the evaluations are not lost for it.
            Err(error) => {
                tracing::warn!(tenant = %row.tenant_id, %error, "evaluations by code are put off");
                Outcome::Snooze { until: app.clock.now() + 5_000_000 }
            }
        }
    }
}

/// Runs the evaluations that are possible now. Returns when the others may run, if any are left.
async fn work(app: &Arc<App>, tenant: Uuid, ids: &[Uuid]) -> Result<Option<i64>> {
    // A tenant that has used up its processor time leaves the worker to other tenants.
    if let Some(until) = app.code.exhausted_until(tenant) {
        return Ok(Some(until));
    }
    let rows = evaluations::start(&app.db, tenant, ids).await?;
    let done = judge(app, tenant, ids.len(), rows.clone()).await;
    if done.is_err() {
        // Nobody was lost over them.
        for row in &rows {
            evaluations::put_back(&app.db, tenant, row, None).await?;
        }
    }
    done
}

/// Judges claimed evaluations, `together` in all, and stores the outcomes. Puts the others back and returns
/// when they may run.
async fn judge(
    app: &Arc<App>,
    tenant: Uuid,
    together: usize,
    rows: Vec<evaluation::Model>,
) -> Result<Option<i64>> {
    let mut by_subject: BTreeMap<(Uuid, Option<Uuid>), Vec<evaluation::Model>> = BTreeMap::new();
    let mut ends = Vec::with_capacity(rows.len());
    let mut shared = Shared::default();
    for row in rows {
        match (lost(&row), together) {
            (it, _) if it >= LOST => ends.push((row, given_up(it))),
            // One of these may be what kills whoever works on it: from now on each is done alone.
            (1.., 2..) => alone(app, &row).await?,
            _ => by_subject.entry((row.trace_id, row.span_id)).or_default().push(row),
        }
    }
    let mut stored_at = app.clock.now();
    let mut waiting = by_subject.into_iter();
    while let Some(((trace, span), rows)) = waiting.next() {
        // One trace at a time: its texts may be many megabytes.
        let subject = match subject::read(&app.db, tenant, trace, span, false).await {
            Ok(Found::Subject(subject)) => Arc::<Subject>::from(subject),
            Ok(gone) => {
                ends.extend(rows.into_iter().map(|row| (row, failed(absent(&gone)))));
                continue;
            }
            Err(error) => {
                let end = at_fault(tenant, error)?;
                ends.extend(rows.into_iter().map(|row| (row, end.clone())));
                continue;
            }
        };
        let mut rows = rows.into_iter();
        while let Some(row) = rows.next() {
            let prepared = match shared.prepared(app, &row).await {
                Ok(Ok(prepared)) => prepared,
                Ok(Err(why)) => {
                    ends.push((row, failed(why)));
                    continue;
                }
                Err(error) => {
                    ends.push((row, at_fault(tenant, error)?));
                    continue;
                }
            };
            let exhausted = app.code.exhausted_until(tenant);
            let end = match exhausted {
                Some(_) => None,
                None => by_code(app, &row, prepared, Arc::clone(&subject)).await,
            };
            let Some(end) = end else {
                evaluations::end(&app.db, tenant, ends, app.clock.now()).await?;
                let rest = waiting.flat_map(|it| it.1);
                for row in std::iter::once(row).chain(rows).chain(rest) {
                    evaluations::put_back(&app.db, tenant, &row, None).await?;
                }
                return Ok(Some(exhausted.unwrap_or_else(|| app.clock.now())));
            };
            ends.push((row, end));
        }
        if app.clock.now() - stored_at > STORE_INTERVAL_MICROS {
            evaluations::end(&app.db, tenant, std::mem::take(&mut ends), app.clock.now()).await?;
            stored_at = app.clock.now();
        }
    }
    evaluations::end(&app.db, tenant, ends, app.clock.now()).await?;
    Ok(None)
}

/// Runs a code evaluator. Returns none when the server stops before there is a verdict.
async fn by_code(
    app: &App,
    row: &evaluation::Model,
    prepared: Arc<Prepared>,
    subject: Arc<Subject>,
) -> Option<End> {
    let tenant = row.tenant_id;
    let turn = app.code.turn(tenant).await?;
    let compiled = Arc::clone(&app.compiled);
    let end = turn.run(move || prepared.judge(tenant, &compiled, &subject)).await;
    let timed_out = matches!(end, Err(Unfinished::OutOfTime));
    if let Some(rule) = row.rule_id.filter(|it| app.code.is_too_slow(tenant, *it, timed_out))
        && let Err(error) = pause(app, row, rule).await
    {
        tracing::warn!(%tenant, %rule, %error, "an eval rule whose evaluator is too slow could not be paused");
    }
    finished(end)
}

/// Pauses the eval rule of an evaluation because its evaluator is too slow. A rule that was changed after
/// the evaluation was created is not paused.
async fn pause(app: &App, row: &evaluation::Model, rule: Uuid) -> Result<()> {
    let (tenant, now) = (row.tenant_id, app.clock.now());
    let why = format!("several evaluations in a row failed: {}", out_of_time());
    let txn = app.db.begin().await?;
    let since = now - rules::PAUSE;
    if store::eval_rules::pause(&txn, tenant, rule, &why, row.created_at, (since, now)).await? {
        tracing::warn!(%tenant, %rule, why, "an eval rule is paused");
        app.commit(txn).await?;
    }
    Ok(())
}

/// Returns the outcome of an evaluation by code; none when the server stopped it.
pub fn finished(end: Result<End, Unfinished>) -> Option<End> {
    match end {
        Ok(end) => Some(end),
        Err(Unfinished::OutOfTime) => Some(failed(out_of_time())),
        // A fault of one evaluator must not affect the others.
        Err(Unfinished::Broken) => Some(failed(BROKE)),
        Err(Unfinished::Stopping) => None,
    }
}

fn out_of_time() -> String {
    format!(
        "it took more than {} s of processor time, the most that an evaluation by code may use: simplify its \
         patterns or schemas (repeat less), or judge a span with a shorter text",
        MAX_TASK_TIME.as_secs()
    )
}

/// An evaluator with its config.
pub struct Prepared {
    /// The evaluator.
    pub evaluator: Evaluator,
    /// The config as text.
    pub text: String,
    /// The parsed config.
    pub config: Config,
}

impl Prepared {
    /// What it says of a trace. This can take long: it is called on a thread of the
    /// [`CodeRunner`](crate::code_runner::CodeRunner).
    pub fn judge(&self, tenant: Uuid, compiled: &Compiled, subject: &Subject) -> End {
        let rule = match compiled.get(tenant, &self.evaluator, &self.text) {
            Ok(rule) => rule,
            Err(why) => return failed(why),
        };
        let verdict = rule.judge(subject).map_err(|it| it.to_string()).map(|it| {
            let label = it.label.unwrap_or_else(|| label(it.score, &self.config).to_owned());
            (it.score, label, it.reasoning)
        });
        End { evaluator_version: Some(self.evaluator.version()), verdict, judged: Judged::default() }
    }
}

/// What the evaluations of a job have in common: those of one run or rule are prepared once.
#[derive(Default)]
struct Shared(HashMap<Source, Result<Arc<Prepared>, String>>);

/// What options are found by: an evaluator, a bulk run, a rule.
type Source = (String, Option<Uuid>, Option<Uuid>);

impl Shared {
    async fn prepared(
        &mut self,
        app: &App,
        row: &evaluation::Model,
    ) -> Result<Result<Arc<Prepared>, String>> {
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

/// The evaluator and config of an evaluation by code; in words, when there is none.
///
/// # Errors
/// When the database fails.
pub async fn prepare(app: &App, row: &evaluation::Model) -> Result<Result<Prepared, String>> {
    let (tenant, metric) = (row.tenant_id, &row.metric_name);
    let Some(text) = config_of(app, row).await? else { return Ok(Err(no_config())) };
    let Some(evaluator) = rules::evaluator(app, tenant, metric).await? else {
        return Ok(Err(no_evaluator(metric)));
    };
    let config = serde_json::from_str(&text).unwrap_or_default();
    Ok(Ok(Prepared { evaluator, text, config }))
}

/// The config of an evaluation as text: its own, its bulk run's or its rule's.
///
/// # Errors
/// When the database fails.
pub async fn config_of(app: &App, row: &evaluation::Model) -> Result<Option<String>> {
    if let Some(config) = &row.config {
        return Ok(Some(config.clone()));
    }
    if let Some(bulk) = row.bulk_id {
        return Ok(store::bulk_runs::config(app.db.current(), row.tenant_id, bulk).await?);
    }
    let Some(rule) = row.rule_id else { return Ok(Some("{}".to_owned())) };
    Ok(rules::rule(app, row.tenant_id, rule).await?.map(|it| it.row.config.clone()))
}

/// Puts an evaluation into a job of its own.
async fn alone(app: &App, row: &evaluation::Model) -> Result<()> {
    let now = app.clock.now();
    evaluations::put_back(&app.db, row.tenant_id, row, None).await?;
    queue::enqueue_all(&app.db.write, vec![job(row.tenant_id, vec![row.id], now)]).await?;
    Ok(())
}

/// How many workers got lost over an evaluation before this one took it up.
pub fn lost(row: &evaluation::Model) -> i32 {
    row.attempts.saturating_sub(1).saturating_sub(row.returns)
}

/// The end of an evaluation over which workers got lost too often.
pub fn given_up(lost: i32) -> End {
    failed(format!("{lost} workers were lost over it; ask for it again"))
}

/// An end without a verdict.
pub fn failed(why: impl Into<String>) -> End {
    End { evaluator_version: None, verdict: Err(why.into()), judged: Judged::default() }
}

/// The end of an evaluation that this server can't do now and can't do later, like one of a trace
/// whose stored texts are damaged. It is this one's alone: others are done.
///
/// # Errors
/// The error, if it passes by itself.
pub fn at_fault(tenant: Uuid, error: Error) -> Result<End> {
    if error.passes() {
        return Err(error);
    }
    tracing::error!(%tenant, error = format!("{error:#}"), "an evaluation can't be done");
    Ok(failed(FAULT))
}

/// Why a trace can't be read.
pub fn absent(found: &Found) -> &'static str {
    match found {
        Found::NoSpan => "the trace has no such span any more",
        _ => evaluations::REMOVED,
    }
}

/// There is nobody to judge.
pub fn no_evaluator(metric: &str) -> String {
    format!("there is no evaluator `{metric}` any more")
}

/// There are no options to judge by.
pub fn no_config() -> String {
    "the rule that asked for it was deleted before it was judged".to_owned()
}
