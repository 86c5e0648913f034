//! Runs eval rules on the outputs of control actions.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use api::{Plan, eval::EvaluationContext};
use entities::{control_action, evaluation, trace};
use store::{Transaction, evaluations, traces};
use uuid::Uuid;

use super::{
    evaluation_request,
    rule_firing::{FiringBatch, matches, new_evaluation},
    rules,
};
use crate::{
    app::App,
    error::Result,
    rule_set::{ParsedRule, RuleSet},
};

/// The rules that evaluate the output of an action: those that match its trace and are not paused.
pub struct RemediationRules {
    plan: Plan,
    trace: Option<trace::Model>,
    rule_set: Arc<RuleSet>,
    matching: Vec<Arc<ParsedRule>>,
}

impl RemediationRules {
    /// Reads the rules. Call this before the transaction that ends the action begins.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn read(app: &App, tenant: Uuid, trace_id: Uuid) -> Result<Self> {
        let rule_set = app.access_cache.rule_set(tenant).await?;
        let plan = match app.access_cache.tenant(tenant).await? {
            Some(row) => row.plan.parse().map_err(anyhow::Error::from)?,
            None => Plan::Starter,
        };
        let trace = traces::some(app.db.current(), tenant, &[trace_id]).await?.pop();
        let mut matching = Vec::new();
        if let Some(trace) = &trace {
            let kinds = traces::span_kinds(&app.db, tenant, &[trace_id]).await?;
            // Outputs of actions are never sampled out.
            for rule in rule_set.rules.iter().filter(|it| it.row.enabled && matches(it, trace, &kinds)) {
                if rules::find_pause(app, tenant, plan, rule).await?.is_none() {
                    matching.push(Arc::clone(rule));
                }
            }
        }
        Ok(Self { plan, trace, rule_set, matching })
    }
}

/// Creates the evaluations of an action's output, each with its baseline. LLM evaluations beyond the monthly quota are
/// dropped. The caller holds the lock of the trace.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn fire(
    txn: &Transaction,
    rules: RemediationRules,
    action: &control_action::Model,
    span: Uuid,
    now: i64,
) -> Result<()> {
    let RemediationRules { plan, trace, rule_set, matching } = rules;
    let Some(trace) = trace.filter(|_| !matching.is_empty()) else { return Ok(()) };
    let tenant = action.tenant_id;
    let baselines = baselines(txn, action).await?;
    let mut batch = FiringBatch { tenant, now, rows: Vec::new(), decisions: Vec::new() };
    for rule in matching {
        let version = rule_set.evaluator(&rule.row.metric_name).map_or_else(String::new, |it| it.version());
        let row = evaluation::Model {
            span_id: Some(span),
            context: EvaluationContext::Remediation.as_str().to_owned(),
            source_action_id: action.id,
            original_evaluation_id: baselines.get(&(rule.row.id, rule.row.metric_name.clone())).copied(),
            ..new_evaluation(tenant, &rule, &trace, version, now)
        };
        batch.rows.push((rule, row));
    }
    batch.drop_beyond_quota(txn, plan).await?;
    let rows = batch.rows.into_iter().map(|it| it.1).collect();
    evaluation_request::enqueue(txn, rows, now).await?;
    Ok(())
}

/// Returns, for each rule and metric, its newest complete evaluation of the trace from before the action. Without one, an
/// evaluation that has not ended counts, because a failure triggers evaluations and actions at the same time.
async fn baselines(
    txn: &Transaction,
    action: &control_action::Model,
) -> Result<HashMap<(Uuid, String), Uuid>> {
    let mut baselines = HashMap::new();
    for (rule, metric, evaluation) in
        evaluations::baselines_by_rule(txn, action.tenant_id, action.trace_id, action.created_at).await?
    {
        if let Entry::Vacant(entry) = baselines.entry((rule, metric)) {
            entry.insert(evaluation);
        }
    }
    Ok(baselines)
}
