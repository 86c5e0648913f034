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
    evaluation_request::{self, quota_exceeded_message},
    matching::is_sampled,
    rules,
};
use crate::{
    access::plans::monthly_limit, app::App, error::Result, evaluator::Evaluator, pools,
    rule_filter::mismatch_reason, rule_set::ParsedRule,
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
/// Why a bulk evaluation processes fewer traces than match at its end.
const MORE_TRACES_MESSAGE: &str =
    "more traces matched while it was running, and the oldest were skipped; start it again";
/// Why a bulk evaluation cannot continue.
const DELETED_RULE_MESSAGE: &str = "the rule or its evaluator was deleted meanwhile";

/// Creates the evaluations of a bulk evaluation.
#[derive(Debug, Serialize, Deserialize)]
pub struct FillBulk {
    /// The bulk evaluation.
    pub bulk: Uuid,
}

impl Job for FillBulk {
    const KIND: &'static str = "fill_bulk";
    const POOL: &'static WorkerPool = &pools::EVALUATIONS_POOL;
}

/// The progress of a bulk evaluation.
enum FillProgress {
    /// All evaluations are created.
    Done,
    /// There may be more to create.
    More,
    /// So many evaluations wait for judges that the job can pause.
    Enough,
}

// Creates evaluations block by block, up to the number of blocks of one run.
impl RunJob<App> for FillBulk {
    async fn run(self, app: &Arc<App>, row: &job::Model) -> JobResult {
        for _ in 0..BLOCKS_PER_RUN {
            if app.is_stopping() {
                break;
            }
            match fill(app, row.tenant_id, self.bulk).await {
                Ok(FillProgress::Done) => return JobResult::Done,
                Ok(FillProgress::More) => {}
                Ok(FillProgress::Enough) => {
                    return JobResult::Snooze { until: app.clock.now() + WAIT_MICROS };
                }
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
async fn fill(app: &App, tenant: Uuid, id: Uuid) -> Result<FillProgress> {
    let db = app.db.current();
    let Some(bulk) = bulk_runs::get(db, tenant, id).await?.filter(|it| !it.filled) else {
        return Ok(FillProgress::Done);
    };
    let Some(tenant_row) = app.access_cache.tenant(tenant).await? else { return Ok(FillProgress::Done) };
    let plan: Plan = tenant_row.plan.parse().map_err(anyhow::Error::from)?;
    let by_judge = bulk.evaluator_type == EvaluatorType::Llm.as_str();
    let rule = match bulk.rule_id {
        Some(rule) => rules::find_rule(app, tenant, rule).await?,
        None => None,
    };
    let evaluator = rules::find_evaluator(app, tenant, &bulk.metric_name).await?;
    let stop_reason = stop_reason(app, plan, &bulk, rule.as_deref(), evaluator.as_ref()).await?;
    if by_judge
        && stop_reason.is_none()
        && bulk_runs::waiting(db, tenant, id).await? >= MAX_WAITING_EVALUATIONS
    {
        return Ok(FillProgress::Enough);
    }
    let filter: TraceConditions = serde_json::from_str(&bulk.filter).map_err(anyhow::Error::from)?;
    let page =
        traces::narrow_page(&app.db.primary(), tenant, &filter, position(&bulk), TRACES_PER_BLOCK).await?;
    let mut block = FillBlock {
        tenant,
        plan,
        now: app.clock.now(),
        by_judge,
        version: evaluator.as_ref().map(Evaluator::version).unwrap_or_default(),
        after: position(&bulk),
        last: page.last().map(traces::position),
        ends: page.len() < TRACES_PER_BLOCK,
        // If no traces are left, nothing is stopped.
        stop_reason: stop_reason.filter(|_| !page.is_empty()),
        selected: Vec::new(),
    };
    if block.stop_reason.is_none() {
        block.selected = match &rule {
            Some(rule) => selected_traces(app, tenant, rule, page).await?,
            None => page,
        };
    }
    let txn = app.db.begin().await?;
    let Some(bulk) = bulk_runs::lock(&txn, tenant, id).await? else { return Ok(FillProgress::Done) };
    if bulk.filled || position(&bulk) != block.after {
        // Another worker, which considered this one lost, has progressed further.
        return Ok(if bulk.filled { FillProgress::Done } else { FillProgress::More });
    }
    let filled = block.store(&txn, bulk).await?;
    txn.commit().await?;
    Ok(if filled { FillProgress::Done } else { FillProgress::More })
}

fn position(bulk: &eval_bulk::Model) -> Option<traces::ListPosition> {
    bulk.position_at.zip(bulk.position_key)
}

/// Returns why a bulk evaluation cannot continue; `None` if it can.
async fn stop_reason(
    app: &App,
    plan: Plan,
    bulk: &eval_bulk::Model,
    rule: Option<&ParsedRule>,
    evaluator: Option<&Evaluator>,
) -> Result<Option<String>> {
    let (Some(evaluator), true) = (evaluator, rule.is_some() || bulk.rule_id.is_none()) else {
        return Ok(Some(DELETED_RULE_MESSAGE.to_owned()));
    };
    if let Some(rule) = rule
        && let Some(why) = rules::find_pause(app, bulk.tenant_id, plan, rule).await?
    {
        return Ok(Some(why.detail));
    }
    let Some(tier) = bulk.model_tier.as_deref() else { return Ok(None) };
    let tier = tier.parse().map_err(anyhow::Error::from)?;
    let judge = app.judge.select(bulk.tenant_id, plan, evaluator.preferred_provider(), tier).await?;
    Ok(judge.err().map(|it| it.to_string()))
}

/// Returns the traces that a rule selects and has not evaluated.
async fn selected_traces(
    app: &App,
    tenant: Uuid,
    rule: &ParsedRule,
    page: Vec<trace::Model>,
) -> Result<Vec<trace::Model>> {
    let ids: Vec<Uuid> = page.iter().map(|it| it.id).collect();
    let evaluated = evaluations::evaluated_by_rules(app.db.current(), tenant, &[rule.row.id], &ids).await?;
    let requested = if rule.filter.span_type.is_some() { ids } else { Vec::new() };
    let kinds = traces::span_kinds(&app.db, tenant, &requested).await?;
    let selected = |trace: &trace::Model| {
        let has = |kind: &str| kinds.get(&trace.id).is_some_and(|it| it.contains(kind));
        // A rule evaluates a trace only once, so it must not evaluate an incomplete one.
        trace.ready
            && !evaluated.contains(&(rule.row.id, trace.id))
            && mismatch_reason(&rule.filter, trace, has).is_none()
            && is_sampled(trace.id, rule.row.sample_rate)
    };
    Ok(page.into_iter().filter(selected).collect())
}

/// The evaluations that one transaction creates.
struct FillBlock {
    tenant: Uuid,
    plan: Plan,
    now: i64,
    by_judge: bool,
    /// The evaluator's version.
    version: String,
    /// The position at which the block begins.
    after: Option<traces::ListPosition>,
    /// The last trace of the block.
    last: Option<traces::ListPosition>,
    /// Whether the block is the last one.
    ends: bool,
    /// Why no more evaluations are created.
    stop_reason: Option<String>,
    /// The traces to evaluate.
    selected: Vec<trace::Model>,
}

impl FillBlock {
    /// Stores the evaluations and the progress. Returns true at the end of the bulk evaluation.
    async fn store(self, txn: &Transaction, mut bulk: eval_bulk::Model) -> Result<bool> {
        let quota = Quota::LlmEvaluations;
        let ids: Vec<Uuid> = self.selected.iter().map(|it| it.id).collect();
        let existing: HashSet<Uuid> = traces::lock_some(txn, self.tenant, &ids).await?.into_iter().collect();
        // A late span may have moved an evaluated trace past the current position.
        let created = match bulk.queued {
            0 => HashSet::new(),
            _ => bulk_runs::made(txn, self.tenant, bulk.id, &ids).await?,
        };
        let is_new = |it: &&trace::Model| existing.contains(&it.id) && !created.contains(&it.id);
        let mut rows: Vec<evaluation::Model> =
            self.selected.iter().filter(is_new).map(|it| self.row(&bulk, it)).collect();
        let selected = rows.len();
        let mut is_quota_exhausted = bulk.granted < bulk.matched;
        if self.by_judge {
            rows.truncate(usize::try_from(bulk.granted - bulk.queued).unwrap_or(0));
        }
        // A bulk evaluation reserved its quota at the start.
        let this_month = (self.by_judge && bulk.quota_month.is_none()).then(|| month(self.now));
        if let Some(month) = this_month {
            let (requested, limit) = (count(rows.len()), monthly_limit(quota, self.plan));
            let granted = quotas::reserve(txn, self.tenant, month, quota, limit, requested).await?;
            is_quota_exhausted |= granted < requested;
            rows.truncate(usize::try_from(granted).unwrap_or(0));
        }
        let within_quota = rows.len();
        let added = evaluation_request::enqueue(txn, rows, self.now).await?;
        if let Some(month) = this_month {
            // Concurrent backfills of the rule may have created some of them.
            let left = count(within_quota - added.min(within_quota));
            quotas::release(txn, self.tenant, month, quota, left).await?;
        }
        bulk.queued += count(added);
        (bulk.position_at, bulk.position_key) = self.last.or(self.after).unzip();
        bulk.filled = self.ends || self.stop_reason.is_some() || within_quota < selected;
        if bulk.filled {
            let short = bulk.queued < bulk.matched;
            bulk.detail = match (self.stop_reason, within_quota < selected) {
                (Some(why), _) => Some(why),
                (None, true) if is_quota_exhausted => Some(quota_exceeded_message(self.plan)),
                (None, true) => Some(MORE_TRACES_MESSAGE.to_owned()),
                (None, false) if bulk.detail.is_some() || !short => bulk.detail,
                (None, false) if bulk.rule_id.is_some() => Some(SKIPPED_MESSAGE.to_owned()),
                (None, false) => Some(DELETED_TRACES_MESSAGE.to_owned()),
            };
            if let Some(month) = bulk.quota_month {
                let left = bulk.granted - bulk.queued;
                quotas::release(txn, self.tenant, month, quota, left).await?;
            }
            // A free bulk evaluation may find more traces than were counted.
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
