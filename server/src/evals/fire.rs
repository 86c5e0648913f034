//! Rules firing: what happens when traces are ready.
//!
//! Marking a trace ready and asking for its evaluations is one transaction, and a trace is marked
//! by exactly one job, so a rule neither misses a trace nor judges it twice. Filters are compared
//! before that transaction, on narrow rows: where no rule selects anything, nothing more is written
//! than without rules.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use api::{Plan, eval_rule::Decision};
use entities::{evaluation, rule_decision, trace};
use uuid::Uuid;

use super::{
    ask::{self, exceeded_message},
    matching::{sampled, unselected},
    row,
    rules::{self, Rule},
};
use crate::{
    access::plans::Quota,
    app::App,
    clock::month,
    error::Result,
    store::{self, quotas, traces},
};

/// Marks those of the traces ready whose `ready_at` is still the given one, and asks for what rules
/// want of them.
///
/// # Errors
/// When the database fails; the traces are as they were then.
pub async fn ready(app: &App, tenant: Uuid, ids: &[Uuid], ready_at: i64) -> Result<()> {
    let setup = app.known.setup(tenant).await?;
    let acting: Vec<&Arc<Rule>> = setup.rules.iter().filter(|it| it.row.enabled).collect();
    if acting.is_empty() {
        traces::mark_ready(&app.db.write, tenant, ids, ready_at).await?;
        return Ok(());
    }
    let rows = traces::falling_due(&app.db, tenant, ids, ready_at).await?;
    let kinds = span_kinds(app, tenant, &acting, &rows).await?;
    let selected: Vec<(&Arc<Rule>, &trace::Model)> = rows
        .iter()
        .flat_map(|trace| acting.iter().map(move |rule| (*rule, trace)))
        .filter(|(rule, trace)| selects(rule, trace, &kinds))
        .collect();
    if selected.is_empty() {
        traces::mark_ready(&app.db.write, tenant, ids, ready_at).await?;
        return Ok(());
    }
    let Some(known) = app.known.tenant(tenant).await? else { return Ok(()) };
    let plan: Plan = known.plan.parse().map_err(anyhow::Error::from)?;
    let mut paused: HashMap<Uuid, Option<String>> = HashMap::new();
    for (rule, _) in &selected {
        if let std::collections::hash_map::Entry::Vacant(place) = paused.entry(rule.row.id) {
            place.insert(rules::paused(app, tenant, plan, rule).await?);
        }
    }
    let now = app.clock.now();
    let txn = app.db.begin().await?;
    traces::lock_in_order(&txn, tenant, ids).await?;
    let marked: HashSet<Uuid> = traces::mark_ready(&txn, tenant, ids, ready_at).await?.into_iter().collect();
    let rules: Vec<Uuid> = paused.keys().copied().collect();
    let traces: Vec<Uuid> = marked.iter().copied().collect();
    let judged = store::evaluations::judged(&txn, tenant, &rules, &traces).await?;
    let mut firing = Firing { tenant, now, rows: Vec::new(), notes: Vec::new() };
    for (rule, trace) in selected {
        if !marked.contains(&trace.id) || judged.contains(&(rule.row.id, trace.id)) {
            continue;
        }
        match &paused[&rule.row.id] {
            Some(why) => firing.note(rule, trace, Decision::Paused, why.clone()),
            None => {
                let evaluator = setup.evaluator(&rule.row.metric_name);
                let version = evaluator.map_or_else(String::new, |it| it.version());
                firing.rows.push((Arc::clone(rule), asked(tenant, rule, trace, version, now)));
            }
        }
    }
    firing.within_quota(&txn, plan).await?;
    let rows = firing.rows.into_iter().map(|it| it.1).collect();
    ask::store(&txn, rows, now).await?;
    store::eval_rules::note(&txn, firing.notes).await?;
    txn.commit().await?;
    Ok(())
}

/// Whether a rule would judge a trace, as far as that follows from the two. `kinds` are the kinds
/// of spans of each trace.
fn selects(rule: &Rule, trace: &trace::Model, kinds: &HashMap<Uuid, HashSet<String>>) -> bool {
    let has = |kind: &str| kinds.get(&trace.id).is_some_and(|it| it.contains(kind));
    rule.row.project_id == trace.project_id
        && unselected(&rule.filter, trace, has).is_none()
        && sampled(trace.id, rule.row.sample_rate)
}

/// The kinds of spans of the traces that a rule wants to know of.
async fn span_kinds(
    app: &App,
    tenant: Uuid,
    rules: &[&Arc<Rule>],
    rows: &[trace::Model],
) -> Result<HashMap<Uuid, HashSet<String>>> {
    let asking = |trace: &trace::Model| {
        rules.iter().any(|it| it.filter.span_type.is_some() && it.row.project_id == trace.project_id)
    };
    let ids: Vec<Uuid> = rows.iter().filter(|it| asking(it)).map(|it| it.id).collect();
    Ok(traces::span_kinds(&app.db, tenant, &ids).await?)
}

/// The evaluation of a trace that a rule asks for.
fn asked(tenant: Uuid, rule: &Rule, trace: &trace::Model, version: String, now: i64) -> evaluation::Model {
    let is_llm = rule.kind == api::EvaluatorType::Llm;
    evaluation::Model {
        metric_name: rule.row.metric_name.clone(),
        evaluator_type: rule.kind.as_str().to_owned(),
        evaluator_version: version,
        model_tier: is_llm.then(|| rule.tier.as_str().to_owned()),
        rule_id: Some(rule.row.id),
        quota_month: is_llm.then(|| month(now)),
        ..row::pending(tenant, trace.id, trace.project_id, now)
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

    /// Leaves out what the month's quota has no room for.
    async fn within_quota(&mut self, txn: &store::Transaction, plan: Plan) -> Result<()> {
        let wanted = self.rows.iter().filter(|it| it.1.quota_month.is_some()).count();
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        let quota = Quota::LlmEvaluations;
        let mut room =
            quotas::reserve(txn, self.tenant, month(self.now), quota, quota.limit(plan), wanted).await?;
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
