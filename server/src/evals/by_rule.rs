//! Doing evaluations by code, some at once.

use std::{
    collections::{BTreeMap, HashMap},
    panic::AssertUnwindSafe,
    sync::Arc,
};

use entities::{evaluation, job};
use evaluators::{Rule, Subject};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    evaluator::Config,
    matching::label,
    rules,
    subject::{self, Found},
};
use crate::{
    app::App,
    error::{Error, Result},
    queue::{self, Job, Lane, Outcome, new_job},
    store::{
        self,
        evaluations::{self, End, Judged},
    },
};

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
    const LANE: Lane = Lane::Evaluations;
}

/// The job that does these evaluations.
pub fn job(tenant: Uuid, evaluations: Vec<Uuid>, now: i64) -> job::Model {
    new_job(tenant, &EvaluateByRule { evaluations }, now, now)
}

/// Does them.
pub async fn run(app: &Arc<App>, tenant: Uuid, job: EvaluateByRule) -> Outcome {
    match work(app, tenant, &job.evaluations).await {
        Ok(()) => Outcome::Done,
        // Whatever it was, the evaluations are not lost for it.
        Err(error) => {
            tracing::warn!(%tenant, %error, "evaluations by code are put off");
            Outcome::Snooze { until: app.clock.now() + 5_000_000 }
        }
    }
}

async fn work(app: &Arc<App>, tenant: Uuid, ids: &[Uuid]) -> Result<()> {
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

/// Judges what was taken up together with others, `together` in all, and stores the ends.
async fn judge(app: &Arc<App>, tenant: Uuid, together: usize, rows: Vec<evaluation::Model>) -> Result<()> {
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
    for ((trace, span), rows) in by_subject {
        // One trace at a time: its texts may be many megabytes.
        let subject = match subject::read(&app.db, tenant, trace, span, false).await {
            Ok(Found::Subject(subject)) => subject,
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
        let mut prepared = Vec::with_capacity(rows.len());
        for row in rows {
            match shared.prepared(app, &row).await {
                Ok(it) => prepared.push((it, row)),
                Err(error) => ends.push((row, at_fault(tenant, error)?)),
            }
        }
        let judged = tokio::task::spawn_blocking(move || {
            let judge = |(prepared, row): (Result<Arc<Prepared>, String>, evaluation::Model)| {
                let judged = || prepared.map_or_else(failed, |it| it.judge(&subject));
                // Whatever is wrong with one evaluator is not the others'.
                let end =
                    std::panic::catch_unwind(AssertUnwindSafe(judged)).unwrap_or_else(|_| failed(BROKE));
                (row, end)
            };
            prepared.into_iter().map(judge).collect::<Vec<_>>()
        });
        ends.extend(judged.await.map_err(|_| anyhow::anyhow!("an evaluator panicked"))?);
    }
    evaluations::end(&app.db, tenant, ends, app.clock.now()).await?;
    Ok(())
}

/// An evaluator with its config, ready to judge.
pub struct Prepared {
    /// The rule, compiled.
    pub rule: Arc<dyn Rule>,
    /// What it was compiled of.
    pub config: Config,
    /// The evaluator's.
    pub version: String,
}

impl Prepared {
    /// What it says of a trace.
    pub fn judge(&self, subject: &Subject) -> End {
        let verdict = self.rule.judge(subject).map_err(|it| it.to_string()).map(|it| {
            let label = it.label.unwrap_or_else(|| label(it.score, &self.config).to_owned());
            (it.score, label, it.reasoning)
        });
        End { evaluator_version: Some(self.version.clone()), verdict, judged: Judged::default() }
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
    Ok(app.compiled.get(tenant, &evaluator, &text).map(|rule| Prepared {
        rule,
        config: serde_json::from_str(&text).unwrap_or_default(),
        version: evaluator.version(),
    }))
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
