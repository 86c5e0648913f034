//! Runs eval rules when traces become ready.
//!
//! One transaction marks a trace as ready and creates its evaluations, and exactly one job does this
//! for a trace, so a rule neither misses a trace nor evaluates it twice. Filters are checked before the
//! transaction, on narrow rows: if no rule matches, nothing is written in addition.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

use api::{Plan, eval_rule::Decision};
use entities::{evaluation, rule_decision, trace};
use store::{
    evaluations,
    quotas::{self, Quota, month},
    traces::{self, ReadyCondition},
};
use uuid::Uuid;

use super::{
    ask::{self, exceeded_message},
    matching::{sampled, unselected},
    rules::{self, Pause},
};
use crate::{
    access::plans::monthly_limit,
    app::App,
    error::Result,
    rule_set::{Rule, Setup},
};

/// Maximum number of filter conditions in a statement.
const MAX_CONDITIONS: usize = 30;
/// Maximum number of projects in a statement; with more, it returns all.
const MAX_PROJECTS: usize = 200;
/// Approximate number of evaluations that one transaction creates: it holds locks of traces and of the
/// quota.
const MAX_EVALUATIONS_PER_TRANSACTION: usize = 2_000;

/// A trace that becomes ready, and the rules that match it.
type Due = (trace::Model, Vec<Arc<Rule>>);

/// Marks those traces as ready whose `ready_at` still equals the given one, and creates the evaluations
/// of matching rules.
///
/// # Errors
///
/// Fails when the database fails. The next call with the same arguments completes the work.
pub async fn ready(app: &App, tenant: Uuid, ids: &[Uuid], ready_at: i64) -> Result<()> {
    let setup = app.known.setup(tenant).await?;
    let mut acting: HashMap<Uuid, Vec<&Arc<Rule>>> = HashMap::new();
    for rule in setup.rules.iter().filter(|it| it.row.enabled) {
        acting.entry(rule.row.project_id).or_default().push(rule);
    }
    let due = match acting.is_empty() {
        true => Vec::new(),
        false => selected(app, tenant, ids, ready_at, &acting).await?,
    };
    let firing: HashSet<Uuid> = due.iter().map(|it| it.0.id).collect();
    let others: Vec<Uuid> = ids.iter().filter(|it| !firing.contains(it)).copied().collect();
    traces::mark_ready(&app.db.write, tenant, &others, ready_at).await?;
    if due.is_empty() {
        return Ok(());
    }
    let Some(known) = app.known.tenant(tenant).await? else { return Ok(()) };
    let plan: Plan = known.plan.parse().map_err(anyhow::Error::from)?;
    let mut paused: HashMap<Uuid, Option<Pause>> = HashMap::new();
    for rule in due.iter().flat_map(|it| &it.1) {
        if let Entry::Vacant(place) = paused.entry(rule.row.id) {
            place.insert(rules::paused(app, tenant, plan, rule).await?);
        }
    }
    let mut block = Vec::new();
    let mut wanted = 0;
    for it in due {
        wanted += it.1.len();
        block.push(it);
        if wanted >= MAX_EVALUATIONS_PER_TRANSACTION {
            fire(app, &setup, (tenant, plan), ready_at, &block, &paused).await?;
            (block, wanted) = (Vec::new(), 0);
        }
    }
    fire(app, &setup, (tenant, plan), ready_at, &block, &paused).await
}

/// Returns the traces that match rules, before anything is locked.
async fn selected(
    app: &App,
    tenant: Uuid,
    ids: &[Uuid],
    ready_at: i64,
    acting: &HashMap<Uuid, Vec<&Arc<Rule>>>,
) -> Result<Vec<Due>> {
    let rows = traces::becoming_ready(&app.db, tenant, ids, ready_at, &conditions(acting)).await?;
    let of = |trace: &trace::Model| acting.get(&trace.project_id).map(Vec::as_slice).unwrap_or_default();
    let asking = |it: &&trace::Model| of(it).iter().any(|rule| rule.filter.span_type.is_some());
    let asked: Vec<Uuid> = rows.iter().filter(asking).map(|it| it.id).collect();
    let kinds = traces::span_kinds(&app.db, tenant, &asked).await?;
    let due = rows.into_iter().map(|trace| {
        let selecting: Vec<Arc<Rule>> =
            of(&trace).iter().filter(|rule| selects(rule, &trace, &kinds)).map(|it| Arc::clone(it)).collect();
        (trace, selecting)
    });
    Ok(due.filter(|it| !it.1.is_empty()).collect())
}

/// Marks traces as ready and creates the evaluations of their rules, in one transaction.
async fn fire(
    app: &App,
    setup: &Setup,
    (tenant, plan): (Uuid, Plan),
    ready_at: i64,
    due: &[Due],
    paused: &HashMap<Uuid, Option<Pause>>,
) -> Result<()> {
    if due.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = due.iter().map(|it| it.0.id).collect();
    let rules: Vec<Uuid> =
        due.iter().flat_map(|it| &it.1).map(|it| it.row.id).collect::<HashSet<_>>().into_iter().collect();
    let now = app.clock.now();
    let txn = app.db.begin().await?;
    traces::lock_in_order(&txn, tenant, &ids).await?;
    let marked: HashSet<Uuid> = traces::mark_ready(&txn, tenant, &ids, ready_at).await?.into_iter().collect();
    let judged = evaluations::judged(&txn, tenant, &rules, &ids).await?;
    let mut firing = Firing { tenant, now, rows: Vec::new(), notes: Vec::new() };
    let pairs = due.iter().flat_map(|(trace, rules)| rules.iter().map(move |rule| (rule, trace)));
    for (rule, trace) in pairs.filter(|it| marked.contains(&it.1.id)) {
        if judged.contains(&(rule.row.id, trace.id)) {
            continue;
        }
        match paused.get(&rule.row.id).and_then(Option::as_ref) {
            Some(why) => firing.note(rule, trace, Decision::Paused, why.detail.clone()),
            None => {
                let evaluator = setup.evaluator(&rule.row.metric_name);
                let version = evaluator.map_or_else(String::new, |it| it.version());
                firing.rows.push((Arc::clone(rule), new_evaluation(tenant, rule, trace, version, now)));
            }
        }
    }
    firing.within_quota(&txn, plan).await?;
    let rows = firing.rows.into_iter().map(|it| it.1).collect();
    ask::store(&txn, rows, now).await?;
    store::eval_rules::store_decisions(&txn, firing.notes).await?;
    txn.commit().await?;
    Ok(())
}

/// Returns conditions by which the database excludes traces that no rule matches: with many rules only
/// their projects, with very many rules none.
fn conditions(acting: &HashMap<Uuid, Vec<&Arc<Rule>>>) -> Vec<ReadyCondition> {
    let whole = |rule: &&Arc<Rule>| ReadyCondition {
        project_id: rule.row.project_id,
        model: rule.filter.model.clone(),
        name: rule.filter.name.clone(),
        error: rule.filter.error,
        // The part before the first colon belongs to the key, wherever the value begins.
        tag: rule.filter.tag.as_deref().map(|it| it.split(':').next().unwrap_or(it).to_owned()),
    };
    let whole: HashSet<ReadyCondition> = acting.values().flatten().map(whole).collect();
    if whole.len() <= MAX_CONDITIONS {
        return whole.into_iter().collect();
    }
    if acting.len() > MAX_PROJECTS {
        return Vec::new();
    }
    acting
        .keys()
        .map(|it| ReadyCondition { project_id: *it, model: None, name: None, error: None, tag: None })
        .collect()
}

/// Whether a rule matches a trace, as far as that follows from the two. `kinds` contains the span types
/// of each trace.
fn selects(rule: &Rule, trace: &trace::Model, kinds: &HashMap<Uuid, HashSet<String>>) -> bool {
    let has = |kind: &str| kinds.get(&trace.id).is_some_and(|it| it.contains(kind));
    rule.row.project_id == trace.project_id
        && unselected(&rule.filter, trace, has).is_none()
        && sampled(trace.id, rule.row.sample_rate)
}

/// Returns the evaluation of a trace for a rule.
fn new_evaluation(
    tenant: Uuid,
    rule: &Rule,
    trace: &trace::Model,
    version: String,
    now: i64,
) -> evaluation::Model {
    let is_llm = rule.kind == api::EvaluatorType::Llm;
    evaluation::Model {
        metric_name: rule.row.metric_name.clone(),
        evaluator_type: rule.kind.as_str().to_owned(),
        evaluator_version: version,
        model_tier: is_llm.then(|| rule.tier.as_str().to_owned()),
        rule_id: Some(rule.row.id),
        quota_month: is_llm.then(|| month(now)),
        ..evaluations::pending_row(tenant, trace.id, trace.project_id, now)
    }
}

struct Firing {
    tenant: Uuid,
    now: i64,
    rows: Vec<(Arc<Rule>, evaluation::Model)>,
    notes: Vec<rule_decision::Model>,
}

impl Firing {
    fn note(&mut self, rule: &Rule, trace: &trace::Model, decision: Decision, detail: String) {
        self.notes.push(rule_decision::Model {
            tenant_id: self.tenant,
            trace_id: trace.id,
            id: rule.row.id,
            decision: decision.as_str().to_owned(),
            detail,
            decided_at: self.now,
        });
    }

    /// Drops the evaluations that exceed the monthly quota.
    async fn within_quota(&mut self, txn: &store::Transaction, plan: Plan) -> Result<()> {
        let wanted = self.rows.iter().filter(|it| it.1.quota_month.is_some()).count();
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        let quota = Quota::LlmEvaluations;
        let mut room =
            quotas::reserve(txn, self.tenant, month(self.now), quota, monthly_limit(quota, plan), wanted)
                .await?;
        if room == wanted {
            return Ok(());
        }
        for (rule, row) in std::mem::take(&mut self.rows) {
            if row.quota_month.is_none() || room > 0 {
                room -= i64::from(row.quota_month.is_some());
                self.rows.push((rule, row));
            } else {
                self.notes.push(rule_decision::Model {
                    tenant_id: self.tenant,
                    trace_id: row.trace_id,
                    id: rule.row.id,
                    decision: Decision::Quota.as_str().to_owned(),
                    detail: exceeded_message(plan),
                    decided_at: self.now,
                });
            }
        }
        Ok(())
    }
}
