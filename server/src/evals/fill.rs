//! Creates the evaluations of a bulk evaluation, one block of traces per transaction.
//!
//! Each transaction also stores the progress. Judges are slower than this job, so it creates only as
//! many evaluations as judges need for a while. A condition that stops the bulk evaluation (rule
//! paused, judge missing) then stops it before all evaluations are queued.

use std::{collections::HashSet, sync::Arc};

use api::{EvaluatorType, Plan, trace_filter::TraceConditions};
use entities::{eval_bulk, evaluation, job, trace};
use queue::{Job, JobResult, RunJob, WorkerPool};
use serde::{Deserialize, Serialize};
use store::{
    Transaction, bulk_runs, evaluations,
    quotas::{self, Quota, month},
    traces,
};
use uuid::Uuid;

use super::{
    ask::{self, exceeded_message},
    matching::{sampled, unselected},
    rules,
};
use crate::{
    access::plans::monthly_limit, app::App, error::Result, evaluator::Evaluator, pools, rule_set::Rule,
};

/// Number of traces per transaction.
const TRACES_PER_BLOCK: usize = 500;
/// Number of blocks after which the job is continued later, so that other jobs run.
const BLOCKS_PER_RUN: usize = 4;
/// Number of waiting LLM evaluations of one bulk evaluation at which no more are created.
const MAX_WAITING_EVALUATIONS: u64 = 1_000;
/// Delay in microseconds until the job continues then.
const WAIT_MICROS: i64 = 2_000_000;

/// Why a backfill creates fewer evaluations than traces match.
const SKIPPED_MESSAGE: &str = "the rule has evaluated the other traces already, or they are not ready, or not selected by its filter or sample";
/// Why a bulk evaluation creates fewer evaluations than traces match.
const DELETED_TRACES_MESSAGE: &str = "the other traces were deleted meanwhile, or no longer match the filter";
/// Why a bulk evaluation processes fewer traces than finally match.
const MORE_TRACES_MESSAGE: &str =
    "more traces matched while it was running, and the oldest were skipped; start it again";
/// Why a bulk evaluation can't continue.
const DELETED_RULE_MESSAGE: &str = "the rule or its evaluator was deleted meanwhile";

/// Creates the evaluations of a bulk evaluation.
#[derive(Debug, Serialize, Deserialize)]
pub struct FillBulk {
    /// The bulk evaluation.
    pub bulk: Uuid,
}

impl Job for FillBulk {
    const KIND: &'static str = "fill_bulk";
    const POOL: &'static WorkerPool = &pools::EVALUATIONS;
}

/// The progress of a bulk evaluation.
enum Step {
    /// All evaluations are created.
    Done,
    /// There may be more to create.
    More,
    /// So many evaluations wait for judges that the job can pause.
    Enough,
}

// Makes the evaluations of a run, as much as fits into a turn.
impl RunJob<App> for FillBulk {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        for _ in 0..BLOCKS_PER_RUN {
            if app.is_stopping() {
                break;
            }
            match fill(app, row.tenant_id, self.bulk).await {
                Ok(Step::Done) => return JobResult::Done,
                Ok(Step::More) => {}
                Ok(Step::Enough) => return JobResult::Snooze { until: app.clock.now() + WAIT_MICROS },
                Err(error) => {
                    tracing::warn!(tenant = %row.tenant_id, %error, "a bulk evaluation is postponed");
                    return JobResult::Snooze { until: app.clock.now() + 5_000_000 };
                }
            }
        }
        // Other jobs run first, including the evaluations that were created.
        JobResult::Snooze { until: app.clock.now() }
    }
}

/// Creates the evaluations of the next block of traces.
async fn fill(app: &App, tenant: Uuid, id: Uuid) -> Result<Step> {
    let db = app.db.current();
    let Some(bulk) = bulk_runs::get(db, tenant, id).await?.filter(|it| !it.filled) else {
        return Ok(Step::Done);
    };
    let Some(known) = app.known.tenant(tenant).await? else { return Ok(Step::Done) };
    let plan: Plan = known.plan.parse().map_err(anyhow::Error::from)?;
    let by_judge = bulk.evaluator_type == EvaluatorType::Llm.as_str();
    let rule = match bulk.rule_id {
        Some(rule) => rules::rule(app, tenant, rule).await?,
        None => None,
    };
    let evaluator = rules::evaluator(app, tenant, &bulk.metric_name).await?;
    let stopped = stopped(app, plan, &bulk, rule.as_deref(), evaluator.as_ref()).await?;
    if by_judge && stopped.is_none() && bulk_runs::waiting(db, tenant, id).await? >= MAX_WAITING_EVALUATIONS {
        return Ok(Step::Enough);
    }
    let filter: TraceConditions = serde_json::from_str(&bulk.filter).map_err(anyhow::Error::from)?;
    let page =
        traces::narrow_page(&app.db.primary(), tenant, &filter, position(&bulk), TRACES_PER_BLOCK).await?;
    let mut block = Block {
        tenant,
        plan,
        now: app.clock.now(),
        by_judge,
        version: evaluator.as_ref().map(Evaluator::version).unwrap_or_default(),
        after: position(&bulk),
        last: page.last().map(|it| (it.started_at, it.id)),
        ends: page.len() < TRACES_PER_BLOCK,
        // If no traces are left, nothing is stopped.
        stopped: stopped.filter(|_| !page.is_empty()),
        wanted: Vec::new(),
    };
    if block.stopped.is_none() {
        block.wanted = match &rule {
            Some(rule) => selected_traces(app, tenant, rule, page).await?,
            None => page,
        };
    }
    let txn = app.db.begin().await?;
    let Some(bulk) = bulk_runs::lock(&txn, tenant, id).await? else { return Ok(Step::Done) };
    if bulk.filled || position(&bulk) != block.after {
        // Another worker, which considered this one lost, has progressed further.
        return Ok(if bulk.filled { Step::Done } else { Step::More });
    }
    let filled = block.store(&txn, bulk).await?;
    txn.commit().await?;
    Ok(if filled { Step::Done } else { Step::More })
}

fn position(bulk: &eval_bulk::Model) -> Option<(i64, Uuid)> {
    bulk.position_at.zip(bulk.position_id)
}

/// Returns why a bulk evaluation can't continue; `None` if it can.
async fn stopped(
    app: &App,
    plan: Plan,
    bulk: &eval_bulk::Model,
    rule: Option<&Rule>,
    evaluator: Option<&Evaluator>,
) -> Result<Option<String>> {
    let (Some(evaluator), true) = (evaluator, rule.is_some() || bulk.rule_id.is_none()) else {
        return Ok(Some(DELETED_RULE_MESSAGE.to_owned()));
    };
    if let Some(rule) = rule
        && let Some(why) = rules::paused(app, bulk.tenant_id, plan, rule).await?
    {
        return Ok(Some(why.detail));
    }
    let Some(tier) = bulk.model_tier.as_deref() else { return Ok(None) };
    let tier = tier.parse().map_err(anyhow::Error::from)?;
    let judge = app.judge.choose(bulk.tenant_id, plan, evaluator.prefers(), tier).await?;
    Ok(judge.err().map(|it| it.to_string()))
}

/// Returns the traces that a rule selects and has not evaluated.
async fn selected_traces(
    app: &App,
    tenant: Uuid,
    rule: &Rule,
    page: Vec<trace::Model>,
) -> Result<Vec<trace::Model>> {
    let ids: Vec<Uuid> = page.iter().map(|it| it.id).collect();
    let judged = evaluations::judged(app.db.current(), tenant, &[rule.row.id], &ids).await?;
    let asked = if rule.filter.span_type.is_some() { ids } else { Vec::new() };
    let kinds = traces::span_kinds(&app.db, tenant, &asked).await?;
    let selected = |trace: &trace::Model| {
        let has = |kind: &str| kinds.get(&trace.id).is_some_and(|it| it.contains(kind));
        // A rule evaluates a trace only once, so it must not evaluate an incomplete one.
        trace.ready
            && !judged.contains(&(rule.row.id, trace.id))
            && unselected(&rule.filter, trace, has).is_none()
            && sampled(trace.id, rule.row.sample_rate)
    };
    Ok(page.into_iter().filter(selected).collect())
}

/// The evaluations that one transaction creates.
struct Block {
    tenant: Uuid,
    plan: Plan,
    now: i64,
    by_judge: bool,
    /// The evaluator's version.
    version: String,
    /// The position at which the block begins.
    after: Option<(i64, Uuid)>,
    /// The last trace of the block.
    last: Option<(i64, Uuid)>,
    /// Whether no trace is left after it.
    ends: bool,
    /// Why no more evaluations are created.
    stopped: Option<String>,
    /// The traces to evaluate.
    wanted: Vec<trace::Model>,
}

impl Block {
    /// Stores the evaluations and the progress. Returns true at the end of the bulk evaluation.
    async fn store(self, txn: &Transaction, mut bulk: eval_bulk::Model) -> Result<bool> {
        let quota = Quota::LlmEvaluations;
        let ids: Vec<Uuid> = self.wanted.iter().map(|it| it.id).collect();
        let there: HashSet<Uuid> = traces::lock_some(txn, self.tenant, &ids).await?.into_iter().collect();
        // A late span may have moved an evaluated trace behind the current position.
        let made = match bulk.queued {
            0 => HashSet::new(),
            _ => bulk_runs::made(txn, self.tenant, bulk.id, &ids).await?,
        };
        let is_new = |it: &&trace::Model| there.contains(&it.id) && !made.contains(&it.id);
        let mut rows: Vec<evaluation::Model> =
            self.wanted.iter().filter(is_new).map(|it| self.row(&bulk, it)).collect();
        let wanted = rows.len();
        let mut used_up = bulk.granted < bulk.matched;
        if self.by_judge {
            rows.truncate(usize::try_from(bulk.granted - bulk.queued).unwrap_or(0));
        }
        // A bulk evaluation reserved its quota at the start.
        let this_month = (self.by_judge && bulk.quota_month.is_none()).then(|| month(self.now));
        if let Some(month) = this_month {
            let (asked, limit) = (count(rows.len()), monthly_limit(quota, self.plan));
            let taken = quotas::reserve(txn, self.tenant, month, quota, limit, asked).await?;
            used_up |= taken < asked;
            rows.truncate(usize::try_from(taken).unwrap_or(0));
        }
        let kept = rows.len();
        let added = ask::store(txn, rows, self.now).await?;
        if let Some(month) = this_month {
            // Concurrent backfills of the rule may have created some of them.
            let left = count(kept - added.min(kept));
            quotas::release(txn, self.tenant, month, quota, left).await?;
        }
        bulk.queued += count(added);
        (bulk.position_at, bulk.position_id) = self.last.or(self.after).unzip();
        bulk.filled = self.ends || self.stopped.is_some() || kept < wanted;
        if bulk.filled {
            let short = bulk.queued < bulk.matched;
            bulk.detail = match (self.stopped, kept < wanted) {
                (Some(why), _) => Some(why),
                (None, true) if used_up => Some(exceeded_message(self.plan)),
                (None, true) => Some(MORE_TRACES_MESSAGE.to_owned()),
                (None, false) if bulk.detail.is_some() || !short => bulk.detail,
                (None, false) if bulk.rule_id.is_some() => Some(SKIPPED_MESSAGE.to_owned()),
                (None, false) => Some(DELETED_TRACES_MESSAGE.to_owned()),
            };
            if let Some(month) = bulk.quota_month {
                let left = bulk.granted - bulk.queued;
                quotas::release(txn, self.tenant, month, quota, left).await?;
            }
            // Free evaluations may be more than were counted.
            bulk.matched = bulk.matched.max(bulk.queued);
        }
        let filled = bulk.filled;
        bulk_runs::replace(txn, bulk).await?;
        Ok(filled)
    }

    /// Returns the evaluation of a trace.
    fn row(&self, bulk: &eval_bulk::Model, trace: &trace::Model) -> evaluation::Model {
        let row = evaluations::pending_row(self.tenant, trace.id, trace.project_id, self.now);
        evaluation::Model {
            metric_name: bulk.metric_name.clone(),
            evaluator_type: bulk.evaluator_type.clone(),
            evaluator_version: self.version.clone(),
            model_tier: bulk.model_tier.clone(),
            rule_id: bulk.rule_id,
            bulk_id: Some(bulk.id),
            quota_month: bulk.quota_month.or_else(|| self.by_judge.then(|| month(self.now))),
            ..row
        }
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
