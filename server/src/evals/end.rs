//! Stores the results of evaluations, publishes events of failed ones, and enqueues what depends on scores: failure rules,
//! policies, remediation regressions and the tests of prompts.

use api::{
    eval::{EvaluationFailed, EvaluationStatus},
    webhook::EventType,
};
use entities::evaluation;
use store::evaluations::{self, EvaluationResult};
use uuid::Uuid;

use super::view;
use crate::{
    app::App,
    control::triggers,
    deployments::jobs as prompt_jobs,
    error::Result,
    failures::{regressions, scores},
    subscriptions::Subscriptions,
    webhooks::{NewEvent, publish},
};

/// Ends evaluations. Publishes an event for each failed evaluation if a webhook subscribes to these events, and
/// enqueues jobs for scores that may match a failure rule, trigger a policy or be a remediation regression. Uses
/// several transactions if one may not publish all of the events.
///
/// # Errors
///
/// Fails when the database fails. A repeated call ends the evaluations that have not ended yet.
pub async fn store(
    app: &App,
    tenant: Uuid,
    mut results: Vec<(evaluation::Model, EvaluationResult)>,
) -> Result<()> {
    if results.is_empty() {
        return Ok(());
    }
    let subscriptions = match results.iter().any(|(_, it)| it.verdict.is_err()) {
        true => Some(app.access_cache.subscriptions(tenant).await?),
        false => None,
    };
    let subscriptions = subscriptions.filter(|it| it.has(EventType::EvaluationFailed));
    let max_results = subscriptions
        .as_ref()
        .map_or(usize::MAX, |it| it.max_events_per_transaction(EventType::EvaluationFailed));
    while !results.is_empty() {
        let rest = results.split_off(results.len().min(max_results));
        store_together(app, tenant, results, subscriptions.as_deref()).await?;
        results = rest;
    }
    Ok(())
}

async fn store_together(
    app: &App,
    tenant: Uuid,
    results: Vec<(evaluation::Model, EvaluationResult)>,
    subscriptions: Option<&Subscriptions>,
) -> Result<()> {
    let now = app.clock.now();
    let rules = app.access_cache.failure_rules(tenant).await?;
    let policies = app.access_cache.policies(tenant).await?;
    let scored_metrics = app.access_cache.scored_metrics(tenant).await?;
    let txn = app.db.begin().await?;
    let ended = evaluations::end(&txn, tenant, results, now).await?;
    let mut jobs = scores::jobs(&rules, tenant, &ended, now);
    jobs.extend(triggers::jobs(&policies, tenant, &ended, now));
    jobs.extend(regressions::jobs(tenant, &ended, now));
    jobs.extend(prompt_jobs::count_scores(&scored_metrics, tenant, &ended, now));
    queue::enqueue_all(&txn, jobs.clone()).await?;
    if let Some(subscriptions) = subscriptions {
        let failed = ended.into_iter().filter(|it| it.status == EvaluationStatus::Failed.as_str());
        let events = failed.map(event).collect::<Result<Vec<_>>>()?;
        jobs.extend(publish(&txn, subscriptions, tenant, &events, now).await?);
    }
    txn.commit().await?;
    app.wake_ups().wake_for(&jobs);
    Ok(())
}

/// Returns the event of a failed evaluation.
fn event(row: evaluation::Model) -> Result<NewEvent> {
    let event_type = EventType::EvaluationFailed;
    let (project_id, trace_id) = (Some(row.project_id), Some(row.trace_id));
    let data = EvaluationFailed { evaluation: view::evaluation(row)? };
    let data = serde_json::to_value(data).map_err(anyhow::Error::from)?;
    Ok(NewEvent { event_type, project_id, trace_id, data })
}
