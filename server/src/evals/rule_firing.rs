//! Runs eval rules when traces become ready.
//!
//! One transaction marks a trace as ready and creates its evaluations, and exactly one job does this
//! for a trace, so a rule neither misses a trace nor evaluates it twice. Filters are checked before the
//! transaction, on narrow rows: if no rule matches, nothing is written in addition. Code evaluators run before the
//! transaction as well ([`immediate`]), which then inserts their evaluations with the results.

use std::{
    collections::{BTreeMap, HashMap, HashSet, hash_map::Entry},
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
    end::ResultReactions,
    evaluation_request::{self, quota_exceeded_message},
    immediate::{self, ImmediateResults},
    matching::is_sampled,
    rules::{self, RulePause},
};
use crate::{
    access::plans::monthly_limit,
    app::App,
    error::Result,
    rule_filter::mismatch_reason,
    rule_set::{ParsedRule, RuleSet},
};

/// Maximum number of filter conditions in a statement.
const MAX_CONDITIONS: usize = 30;
/// Maximum number of projects in a statement; with more, it returns all.
const MAX_PROJECTS: usize = 200;
/// Approximate number of evaluations that one transaction creates: it holds locks of traces and of the
/// quota.
const MAX_EVALUATIONS_PER_TRANSACTION: usize = 2_000;
/// Time in microseconds during which a job executes code evaluations itself. The others of its traces are executed later.
const MAX_IMMEDIATE_MICROS: i64 = 2_000_000;

/// The keys of traces that become ready at the same time, in microseconds, if no more spans arrive.
pub type ReadyGroup = (i64, Vec<i64>);

/// A trace that becomes ready, and the rules that match it.
pub(super) type DueTrace = (trace::Model, Vec<Arc<ParsedRule>>);

/// Marks those traces as ready whose `ready_at` still equals that of their group, and creates the evaluations
/// of matching rules. `is_first_attempt` is false after an attempt that failed, or whose worker was lost: all evaluations
/// are executed later then, because one of them may be the reason.
///
/// # Errors
///
/// Fails when the database fails. The next call with the same arguments completes the work.
pub async fn mark_ready_and_fire(
    app: &App,
    tenant: Uuid,
    groups: &[ReadyGroup],
    is_first_attempt: bool,
) -> Result<()> {
    let rule_set = app.access_cache.rule_set(tenant).await?;
    let mut active_rules: HashMap<Uuid, Vec<&Arc<ParsedRule>>> = HashMap::new();
    for rule in rule_set.rules.iter().filter(|it| it.row.enabled) {
        active_rules.entry(rule.row.project_id).or_default().push(rule);
    }
    let due = match active_rules.is_empty() {
        true => Vec::new(),
        false => selected(app, tenant, groups, &active_rules).await?,
    };
    let firing: HashSet<(i64, i64)> = due.iter().map(|it| (it.0.key, it.0.ready_at)).collect();
    for (ready_at, keys) in groups {
        let others: Vec<i64> =
            keys.iter().filter(|it| !firing.contains(&(**it, *ready_at))).copied().collect();
        traces::mark_ready(&app.db.write, tenant, &others, *ready_at).await?;
    }
    if due.is_empty() {
        return Ok(());
    }
    let Some(tenant_row) = app.access_cache.tenant(tenant).await? else { return Ok(()) };
    let plan: Plan = tenant_row.plan.parse().map_err(anyhow::Error::from)?;
    let mut paused: HashMap<Uuid, Option<RulePause>> = HashMap::new();
    for rule in due.iter().flat_map(|it| &it.1) {
        if let Entry::Vacant(entry) = paused.entry(rule.row.id) {
            entry.insert(rules::find_pause(app, tenant, plan, rule).await?);
        }
    }
    let firing = RuleFiring { app, tenant, plan, rule_set: &rule_set, paused };
    let evaluate_until = match is_first_attempt {
        true => app.clock.now() + MAX_IMMEDIATE_MICROS,
        false => i64::MIN,
    };
    let mut block = Vec::new();
    let mut requested = 0;
    for it in due {
        requested += it.1.len();
        block.push(it);
        if requested >= MAX_EVALUATIONS_PER_TRANSACTION {
            firing.fire(&block, evaluate_until).await?;
            (block, requested) = (Vec::new(), 0);
        }
    }
    firing.fire(&block, evaluate_until).await
}

/// Returns the traces that match rules, before anything is locked.
async fn selected(
    app: &App,
    tenant: Uuid,
    groups: &[ReadyGroup],
    active_rules: &HashMap<Uuid, Vec<&Arc<ParsedRule>>>,
) -> Result<Vec<DueTrace>> {
    let conditions = conditions(active_rules);
    let mut rows = Vec::new();
    for (ready_at, keys) in groups {
        rows.append(&mut traces::becoming_ready(&app.db, tenant, keys, *ready_at, &conditions).await?);
    }
    let of =
        |trace: &trace::Model| active_rules.get(&trace.project_id).map(Vec::as_slice).unwrap_or_default();
    let needs_span_kinds = |it: &&trace::Model| of(it).iter().any(|rule| rule.filter.span_type.is_some());
    let ids_for_kinds: Vec<Uuid> = rows.iter().filter(needs_span_kinds).map(|it| it.id).collect();
    let kinds = traces::span_kinds(&app.db, tenant, &ids_for_kinds).await?;
    let due = rows.into_iter().map(|trace| {
        let selecting: Vec<Arc<ParsedRule>> =
            of(&trace).iter().filter(|rule| selects(rule, &trace, &kinds)).map(|it| Arc::clone(it)).collect();
        (trace, selecting)
    });
    Ok(due.filter(|it| !it.1.is_empty()).collect())
}

/// Traces of a tenant that become ready, and what their rules need.
struct RuleFiring<'a> {
    app: &'a App,
    tenant: Uuid,
    plan: Plan,
    rule_set: &'a RuleSet,
    /// Why rules are paused, by rule.
    paused: HashMap<Uuid, Option<RulePause>>,
}

impl RuleFiring<'_> {
    fn pause(&self, rule: Uuid) -> Option<&RulePause> {
        self.paused.get(&rule).and_then(Option::as_ref)
    }

    /// Executes code evaluations until a time in microseconds. Then marks the traces as ready and creates the
    /// evaluations of their rules, in one transaction.
    async fn fire(&self, due: &[DueTrace], evaluate_until: i64) -> Result<()> {
        if due.is_empty() {
            return Ok(());
        }
        let (app, tenant) = (self.app, self.tenant);
        let is_paused = |rule| self.pause(rule).is_some();
        let results = immediate::evaluate(app, tenant, self.rule_set, due, is_paused, evaluate_until).await;
        let reactions = match results.is_empty() {
            true => None,
            false => Some(ResultReactions::read(app, tenant).await?),
        };
        let ids: Vec<Uuid> = due.iter().map(|it| it.0.id).collect();
        let rules: Vec<Uuid> =
            due.iter().flat_map(|it| &it.1).map(|it| it.row.id).collect::<HashSet<_>>().into_iter().collect();
        let now = app.clock.now();
        let txn = app.db.begin().await?;
        traces::lock_in_order(&txn, tenant, &ids).await?;
        let mut by_time: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for (trace, _) in due {
            by_time.entry(trace.ready_at).or_default().push(trace.key);
        }
        let mut marked = HashSet::with_capacity(ids.len());
        for (ready_at, keys) in by_time {
            marked.extend(traces::mark_ready(&txn, tenant, &keys, ready_at).await?);
        }
        let evaluated = evaluations::evaluated_by_rules(&txn, tenant, &rules, &ids).await?;
        let mut firing = self.batch(due, &marked, &evaluated, now);
        firing.drop_beyond_quota(&txn, self.plan).await?;
        let rows = firing.rows.into_iter().map(|it| it.1);
        let mut jobs = Vec::new();
        match reactions {
            Some(reactions) => {
                let (ended, pending) =
                    with_results(rows, results, reactions.max_failed_per_transaction(), now);
                let ended = evaluations::add_ended(&txn, ended).await?;
                jobs = reactions.enqueue(&txn, tenant, ended, now).await?;
                evaluation_request::enqueue(&txn, pending, now).await?;
            }
            None => _ = evaluation_request::enqueue(&txn, rows.collect(), now).await?,
        }
        store::eval_rules::store_decisions(&txn, firing.decisions).await?;
        txn.commit().await?;
        app.wake_ups().wake_for(&jobs);
        Ok(())
    }

    /// Returns the evaluations of the marked traces, and the decisions to create none.
    fn batch(
        &self,
        due: &[DueTrace],
        marked: &HashSet<i64>,
        evaluated: &HashSet<(Uuid, Uuid)>,
        now: i64,
    ) -> FiringBatch {
        let mut firing = FiringBatch { tenant: self.tenant, now, rows: Vec::new(), decisions: Vec::new() };
        let pairs = due.iter().flat_map(|(trace, rules)| rules.iter().map(move |rule| (rule, trace)));
        for (rule, trace) in pairs.filter(|it| marked.contains(&it.1.key)) {
            if evaluated.contains(&(rule.row.id, trace.id)) {
                continue;
            }
            match self.pause(rule.row.id) {
                Some(why) => firing.add_decision(rule, trace, Decision::Paused, why.detail.clone()),
                None => {
                    let evaluator = self.rule_set.evaluator(&rule.row.metric_name);
                    let version = evaluator.map_or_else(String::new, |it| it.version());
                    firing
                        .rows
                        .push((Arc::clone(rule), new_evaluation(self.tenant, rule, trace, version, now)));
                }
            }
        }
        firing
    }
}

/// Divides evaluations into those with a result, whose rows are completed, and those that are pending. At most
/// `max_failed` of them get the result that they failed.
fn with_results(
    rows: impl Iterator<Item = evaluation::Model>,
    mut results: ImmediateResults,
    max_failed: usize,
    now: i64,
) -> (Vec<evaluation::Model>, Vec<evaluation::Model>) {
    let (mut ended, mut pending, mut failed) = (Vec::new(), Vec::new(), 0);
    for row in rows {
        let result = row.rule_id.and_then(|rule| results.remove(&(row.trace_id, rule)));
        match result.filter(|it| it.verdict.is_ok() || failed < max_failed) {
            Some(result) => {
                failed += usize::from(result.verdict.is_err());
                // The attempt that has just ended.
                ended.push(evaluations::ended_row(evaluation::Model { attempts: 1, ..row }, result, now));
            }
            None => pending.push(row),
        }
    }
    (ended, pending)
}

/// Returns conditions by which the database excludes traces that no rule matches: with many rules only
/// their projects, with very many rules none.
fn conditions(active_rules: &HashMap<Uuid, Vec<&Arc<ParsedRule>>>) -> Vec<ReadyCondition> {
    let full_condition = |rule: &&Arc<ParsedRule>| ReadyCondition {
        project_id: rule.row.project_id,
        model: rule.filter.model.clone(),
        name: rule.filter.name.clone(),
        error: rule.filter.error,
        // The part before the first colon belongs to the key, wherever the value begins.
        tag: rule.filter.tag.as_deref().map(|it| it.split(':').next().unwrap_or(it).to_owned()),
    };
    let full_condition: HashSet<ReadyCondition> =
        active_rules.values().flatten().map(full_condition).collect();
    if full_condition.len() <= MAX_CONDITIONS {
        return full_condition.into_iter().collect();
    }
    if active_rules.len() > MAX_PROJECTS {
        return Vec::new();
    }
    active_rules
        .keys()
        .map(|it| ReadyCondition { project_id: *it, model: None, name: None, error: None, tag: None })
        .collect()
}

/// Whether a rule matches a trace and the trace is in the rule's sample. `kinds` contains the span types of each
/// trace.
pub(super) fn selects(
    rule: &ParsedRule,
    trace: &trace::Model,
    kinds: &HashMap<Uuid, HashSet<String>>,
) -> bool {
    matches(rule, trace, kinds) && is_sampled(trace.id, rule.row.sample_rate)
}

/// Whether a trace is in the project of a rule and matches its filter.
pub(super) fn matches(
    rule: &ParsedRule,
    trace: &trace::Model,
    kinds: &HashMap<Uuid, HashSet<String>>,
) -> bool {
    let has = |kind: &str| kinds.get(&trace.id).is_some_and(|it| it.contains(kind));
    rule.row.project_id == trace.project_id && mismatch_reason(&rule.filter, trace, has).is_none()
}

/// Returns the evaluation of a trace for a rule.
pub(super) fn new_evaluation(
    tenant: Uuid,
    rule: &ParsedRule,
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

/// Evaluations to create, and the decisions to create none.
pub(super) struct FiringBatch {
    /// The tenant.
    pub(super) tenant: Uuid,
    /// Microseconds.
    pub(super) now: i64,
    /// The evaluations, each with its rule.
    pub(super) rows: Vec<(Arc<ParsedRule>, evaluation::Model)>,
    /// Why rules create no evaluation.
    pub(super) decisions: Vec<rule_decision::Model>,
}

impl FiringBatch {
    fn add_decision(&mut self, rule: &ParsedRule, trace: &trace::Model, decision: Decision, detail: String) {
        self.decisions.push(rule_decision::Model {
            tenant_id: self.tenant,
            trace_id: trace.id,
            id: rule.row.id,
            decision: decision.as_str().to_owned(),
            detail,
            decided_at: self.now,
        });
    }

    /// Drops the evaluations that exceed the monthly quota.
    pub(super) async fn drop_beyond_quota(&mut self, txn: &store::Transaction, plan: Plan) -> Result<()> {
        let requested = self.rows.iter().filter(|it| it.1.quota_month.is_some()).count();
        let requested = i64::try_from(requested).unwrap_or(i64::MAX);
        let quota = Quota::LlmEvaluations;
        let mut granted =
            quotas::reserve(txn, self.tenant, month(self.now), quota, monthly_limit(quota, plan), requested)
                .await?;
        if granted == requested {
            return Ok(());
        }
        for (rule, row) in std::mem::take(&mut self.rows) {
            if row.quota_month.is_none() || granted > 0 {
                granted -= i64::from(row.quota_month.is_some());
                self.rows.push((rule, row));
            } else {
                self.decisions.push(rule_decision::Model {
                    tenant_id: self.tenant,
                    trace_id: row.trace_id,
                    id: rule.row.id,
                    decision: Decision::Quota.as_str().to_owned(),
                    detail: quota_exceeded_message(plan),
                    decided_at: self.now,
                });
            }
        }
        Ok(())
    }
}
