//! Many evaluations at once: by hand over the traces that a filter selects, or as a rule's backfill.
//!
//! What was asked for is counted and, for judges, taken from the month's quota at once, so that the
//! answer says how many there will be. The evaluations themselves are made by a job, a block of
//! traces a transaction, each of which also stores how far it came; what is left of the quota in
//! the end is given back.

use std::{collections::HashSet, sync::Arc};

use api::{EvaluatorType, Plan};
use entities::{eval_bulk, evaluation, trace};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    ask::{self, Asked, exceeded, exceeded_message},
    matching::{sampled, unselected},
    row,
    rules::{self, Rule},
};
use crate::{
    access::plans::Quota,
    app::App,
    clock::{month, new_id},
    error::Result,
    queue::{self, Job, Lane, Outcome},
    store::{
        bulk_runs, evaluations, quotas,
        traces::{self, Filter, Tag},
    },
};

/// Traces that one transaction looks at.
const BLOCK: usize = 500;

/// Blocks that a worker makes before others have their turn.
const TURN: usize = 4;

/// Makes the evaluations of a bulk run.
#[derive(Debug, Serialize, Deserialize)]
pub struct FillBulk {
    /// The run.
    pub bulk: Uuid,
}

impl Job for FillBulk {
    const KIND: &'static str = "fill_bulk";
    const LANE: Lane = Lane::Evaluations;
}

/// The traces that a rule's backfill looks at.
pub fn filter_of(rule: &Rule, from: Option<i64>, to: Option<i64>) -> Filter {
    let tag = rule.filter.tag.as_deref().map(|it| match it.split_once(':') {
        Some((key, value)) => Tag::Pair(key.to_owned(), value.to_owned()),
        None => Tag::Key(it.to_owned()),
    });
    Filter {
        project_id: Some(rule.row.project_id),
        model: rule.filter.model.clone(),
        name: rule.filter.name.clone(),
        error: rule.filter.error,
        tags: tag.into_iter().collect(),
        from,
        to,
        ..Filter::default()
    }
}

/// Begins a run over the traces of a filter, for a rule if there is one.
///
/// # Errors
/// `eval_quota_exceeded` when there is no room for any; when the database fails.
pub async fn begin(
    app: &App,
    tenant: Uuid,
    plan: Plan,
    asked: &Asked,
    mut filter: Filter,
    rule: Option<Uuid>,
) -> Result<eval_bulk::Model> {
    let now = app.clock.now();
    // What comes later is not part of it.
    filter.to = Some(filter.to.map_or(now, |it| it.min(now)));
    let matched = traces::count(&app.db.primary(), tenant, &filter).await?;
    let quota = Quota::LlmEvaluations;
    let quota_month = (asked.kind == EvaluatorType::Llm).then(|| month(now));
    let txn = app.db.begin().await?;
    let granted = match quota_month {
        // A rule wants fewer of them, how many is known when they are looked at: it takes then.
        Some(month) if rule.is_some() => {
            let used = quotas::used(&txn, tenant, month).await?(quota);
            let left = quota.limit(plan).map_or(i64::MAX, |it| i64::try_from(it).unwrap_or(i64::MAX) - used);
            if left > 0 { matched } else { 0 }
        }
        Some(month) => quotas::reserve(&txn, tenant, month, quota, quota.limit(plan), matched).await?,
        None => matched,
    };
    let quota_month = quota_month.filter(|_| rule.is_none());
    if granted == 0 && matched > 0 {
        return Err(exceeded(plan));
    }
    let row = eval_bulk::Model {
        tenant_id: tenant,
        id: new_id(),
        rule_id: rule,
        metric_name: asked.evaluator.name().to_owned(),
        evaluator_type: asked.kind.as_str().to_owned(),
        model_tier: asked.tier.map(|it| it.as_str().to_owned()),
        config: serde_json::to_string(&asked.config).map_err(anyhow::Error::from)?,
        filter: serde_json::to_string(&filter).map_err(anyhow::Error::from)?,
        matched,
        granted,
        queued: 0,
        filled: false,
        position_at: None,
        position_id: None,
        quota_month,
        detail: (granted < matched).then(|| exceeded_message(plan)),
        created_at: now,
    };
    bulk_runs::add(&txn, row.clone()).await?;
    queue::enqueue(&txn, tenant, &FillBulk { bulk: row.id }, now, now).await?;
    txn.commit().await?;
    Ok(row)
}

/// Makes the evaluations of a run.
pub async fn run(app: &Arc<App>, tenant: Uuid, job: FillBulk) -> Outcome {
    for _ in 0..TURN {
        if app.is_stopping() {
            break;
        }
        match fill(app, tenant, job.bulk).await {
            Ok(true) => return Outcome::Done,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%tenant, %error, "a bulk run of evaluations is put off");
                return Outcome::Snooze { until: app.clock.now() + 5_000_000 };
            }
        }
    }
    // Others have their turn, the evaluations that were made among them.
    Outcome::Snooze { until: app.clock.now() }
}

/// Makes those of the next block of traces. True when none is left.
async fn fill(app: &App, tenant: Uuid, id: Uuid) -> Result<bool> {
    let Some(bulk) = bulk_runs::get(app.db.current(), tenant, id).await?.filter(|it| !it.filled) else {
        return Ok(true);
    };
    let filter: Filter = serde_json::from_str(&bulk.filter).map_err(anyhow::Error::from)?;
    let after = bulk.position_at.zip(bulk.position_id);
    let page = traces::narrow_page(&app.db.primary(), tenant, &filter, after, BLOCK).await?;
    let is_last = page.len() < BLOCK;
    let position = page.last().map(|it| (it.started_at, it.id));
    let rule = match bulk.rule_id {
        Some(rule) => rules::rule(app, tenant, rule).await?,
        None => None,
    };
    let rule_is_gone = bulk.rule_id.is_some() && rule.is_none();
    let wanted = match &rule {
        Some(rule) => wanted(app, tenant, rule, page).await?,
        None => page,
    };
    let version = rules::evaluator(app, tenant, &bulk.metric_name).await?.map(|it| it.version());
    let Some(known) = app.known.tenant(tenant).await? else { return Ok(true) };
    let plan: Plan = known.plan.parse().map_err(anyhow::Error::from)?;
    let now = app.clock.now();
    let txn = app.db.begin().await?;
    let Some(mut bulk) = bulk_runs::lock(&txn, tenant, id).await? else { return Ok(true) };
    if bulk.filled || bulk.position_at.zip(bulk.position_id) != after {
        // Another worker, which took this one for lost, has come further.
        return Ok(bulk.filled);
    }
    let room = usize::try_from(bulk.granted - bulk.queued).unwrap_or(0);
    let mut added = 0;
    if let Some(version) = version.filter(|_| !rule_is_gone) {
        let ids: Vec<Uuid> = wanted.iter().map(|it| it.id).collect();
        let there: HashSet<Uuid> = traces::lock_some(&txn, tenant, &ids).await?.into_iter().collect();
        let mut rows: Vec<evaluation::Model> = wanted
            .iter()
            .filter(|it| there.contains(&it.id))
            .take(room)
            .map(|it| made(&bulk, rule.as_deref(), it, &version, now))
            .collect();
        if bulk.rule_id.is_some() && bulk.evaluator_type == EvaluatorType::Llm.as_str() {
            let wanted = i64::try_from(rows.len()).unwrap_or(i64::MAX);
            let quota = Quota::LlmEvaluations;
            let taken = quotas::reserve(&txn, tenant, month(now), quota, quota.limit(plan), wanted).await?;
            if taken < wanted {
                rows.truncate(usize::try_from(taken).unwrap_or(0));
                bulk.detail = Some(exceeded_message(plan));
                bulk.filled = true;
            }
        }
        added = ask::store(&txn, rows, now).await?;
    } else {
        bulk.detail = Some("the rule or its evaluator was deleted meanwhile".to_owned());
        bulk.filled = true;
    }
    bulk.queued += i64::try_from(added).unwrap_or(0);
    bulk.position_at = position.map(|it| it.0).or(bulk.position_at);
    bulk.position_id = position.map(|it| it.1).or(bulk.position_id);
    bulk.filled |= is_last || bulk.queued >= bulk.granted;
    if let Some(month) = bulk.quota_month.filter(|_| bulk.filled) {
        let left = bulk.granted - bulk.queued;
        quotas::give_back(&txn, tenant, month, Quota::LlmEvaluations, left).await?;
    }
    if bulk.filled && bulk.queued < bulk.granted && bulk.detail.is_none() {
        let why = match &rule {
            Some(_) => {
                "the others the rule had judged before, are not ready, or are left out by its filter or sample"
            }
            None => "the others were removed meanwhile",
        };
        bulk.detail = Some(why.to_owned());
    }
    let filled = bulk.filled;
    bulk_runs::replace(&txn, bulk).await?;
    txn.commit().await?;
    Ok(filled)
}

/// Those of the traces that a rule judges and has not judged.
async fn wanted(app: &App, tenant: Uuid, rule: &Rule, page: Vec<trace::Model>) -> Result<Vec<trace::Model>> {
    let ids: Vec<Uuid> = page.iter().map(|it| it.id).collect();
    let judged = evaluations::judged(app.db.current(), tenant, &[rule.row.id], &ids).await?;
    let asked = if rule.filter.span_type.is_some() { ids } else { Vec::new() };
    let kinds = traces::span_kinds(&app.db, tenant, &asked).await?;
    let selected = |trace: &trace::Model| {
        let has = |kind: &str| kinds.get(&trace.id).is_some_and(|it| it.contains(kind));
        // Half a trace would use up the only time that the rule judges it.
        trace.ready
            && !judged.contains(&(rule.row.id, trace.id))
            && unselected(&rule.filter, trace, has).is_none()
            && sampled(trace.id, rule.row.sample_rate)
    };
    Ok(page.into_iter().filter(selected).collect())
}

fn made(
    bulk: &eval_bulk::Model,
    rule: Option<&Rule>,
    trace: &trace::Model,
    version: &str,
    now: i64,
) -> evaluation::Model {
    let row = row::pending(bulk.tenant_id, trace.id, trace.project_id, now);
    evaluation::Model {
        metric_name: bulk.metric_name.clone(),
        evaluator_type: bulk.evaluator_type.clone(),
        evaluator_version: version.to_owned(),
        model_tier: bulk.model_tier.clone(),
        rule_id: rule.map(|it| it.row.id),
        bulk_id: Some(bulk.id),
        quota_month: bulk
            .quota_month
            .or_else(|| (bulk.evaluator_type == EvaluatorType::Llm.as_str()).then(|| month(now))),
        ..row
    }
}
