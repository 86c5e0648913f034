//! Many evaluations at once: by hand over the traces that a filter selects, or as a rule's backfill.
//!
//! What was asked for is counted and, for judges, taken from the month's quota at once, so that the
//! answer says how many there will be. A rule wants fewer than its filter selects, and how many is
//! known only when they are looked at: its backfill takes from the quota then. The evaluations
//! themselves are made by a job ([`super::fill`]).

use api::{EvaluatorType, Plan};
use entities::eval_bulk;
use store::{
    bulk_runs, new_id,
    quotas::{self, Quota, month},
    traces::{self, Filter, Tag},
};
use uuid::Uuid;

use super::{
    ask::{Asked, exceeded, exceeded_message},
    fill::FillBulk,
};
use crate::{access::plans::monthly_limit, app::App, error::Result, rule_set::Rule};

/// The traces that a rule's backfill looks at: those that the rule wants are among them.
pub fn filter_of(rule: &Rule, from: Option<i64>, to: Option<i64>) -> Filter {
    Filter {
        project_id: Some(rule.row.project_id),
        model: rule.filter.model.clone(),
        name: rule.filter.name.clone(),
        error: rule.filter.error,
        tags: rule.filter.tag.as_deref().and_then(Tag::written).into_iter().collect(),
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
    let matched = traces::count(&app.db.primary(), tenant, &filter).await?;
    // What is stored later is no part of it, and is not there to be counted.
    filter.stored_until = Some(now);
    let quota = Quota::LlmEvaluations;
    let quota_month = (asked.kind == EvaluatorType::Llm).then(|| month(now));
    let txn = app.db.begin().await?;
    let granted = match quota_month {
        Some(month) if rule.is_some() => {
            let used = quotas::used(&txn, tenant, month).await?(quota);
            let left = monthly_limit(quota, plan)
                .map_or(i64::MAX, |it| i64::try_from(it).unwrap_or(i64::MAX) - used);
            matched.min(left.max(0))
        }
        Some(month) => {
            quotas::reserve(&txn, tenant, month, quota, monthly_limit(quota, plan), matched).await?
        }
        None => matched,
    };
    if granted == 0 && matched > 0 {
        return Err(exceeded(plan));
    }
    let by_hand = rule.is_none();
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
        quota_month: quota_month.filter(|_| by_hand),
        detail: (by_hand && granted < matched).then(|| exceeded_message(plan)),
        created_at: now,
    };
    bulk_runs::add(&txn, row.clone()).await?;
    queue::enqueue(&txn, tenant, &FillBulk { bulk: row.id }, now, now).await?;
    txn.commit().await?;
    Ok(row)
}
