//! Bulk evaluations and backfills of eval rules.
//!
//! A bulk evaluation is counted and, for judges, reserves the monthly quota at once, so that the
//! response contains the number. A rule evaluates fewer traces than its filter selects, and the number
//! is known only after reading them: a backfill therefore reserves quota as it goes. A job
//! ([`super::bulk_fill`]) creates the evaluations.

use api::{
    EvaluatorType, Plan,
    trace_filter::{Tag, TraceConditions},
};
use entities::eval_bulk;
use store::{
    bulk_runs, new_id,
    quotas::{self, Quota, month},
    traces,
};
use uuid::Uuid;

use super::{
    bulk_fill::FillBulk,
    evaluation_request::{EvaluationRequest, quota_exceeded, quota_exceeded_message},
};
use crate::{access::plans::monthly_limit, app::App, error::Result, rule_set::ParsedRule};

/// Returns the filter of a rule's backfill: it selects at least the traces that the rule evaluates.
pub fn backfill_filter(rule: &ParsedRule, from: Option<i64>, to: Option<i64>) -> TraceConditions {
    TraceConditions {
        project_id: Some(rule.row.project_id),
        model: rule.filter.model.clone(),
        name: rule.filter.name.clone(),
        error: rule.filter.error,
        tags: rule.filter.tag.as_deref().and_then(Tag::written).into_iter().collect(),
        from,
        to,
        ..TraceConditions::default()
    }
}

/// Starts a bulk evaluation of the traces that match a filter, or a backfill of `rule`.
///
/// # Errors
///
/// Fails with `eval_quota_exceeded` when no quota is left, and when the database fails.
pub async fn start(
    app: &App,
    tenant: Uuid,
    plan: Plan,
    request: &EvaluationRequest,
    mut filter: TraceConditions,
    rule: Option<Uuid>,
) -> Result<eval_bulk::Model> {
    let now = app.clock.now();
    let matched = traces::count(&app.db.primary(), tenant, &filter).await?;
    // Traces stored later are not included, so they must not be counted.
    filter.stored_until = Some(now);
    let quota = Quota::LlmEvaluations;
    let quota_month = (request.kind == EvaluatorType::Llm).then(|| month(now));
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
        return Err(quota_exceeded(plan));
    }
    let is_requested_directly = rule.is_none();
    let row = eval_bulk::Model {
        tenant_id: tenant,
        id: new_id(),
        rule_id: rule,
        metric_name: request.evaluator.name().to_owned(),
        evaluator_type: request.kind.as_str().to_owned(),
        model_tier: request.tier.map(|it| it.as_str().to_owned()),
        config: serde_json::to_string(&request.config).map_err(anyhow::Error::from)?,
        filter: serde_json::to_string(&filter).map_err(anyhow::Error::from)?,
        matched,
        granted,
        queued: 0,
        filled: false,
        position_at: None,
        position_key: None,
        quota_month: quota_month.filter(|_| is_requested_directly),
        detail: (is_requested_directly && granted < matched).then(|| quota_exceeded_message(plan)),
        created_at: now,
    };
    bulk_runs::add(&txn, row.clone()).await?;
    queue::enqueue(&txn, tenant, &FillBulk { bulk: row.id }, now, now).await?;
    txn.commit().await?;
    Ok(row)
}
