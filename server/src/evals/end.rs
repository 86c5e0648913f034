//! Stores the results of evaluations, publishes events of failed ones, and enqueues the jobs that match failure
//! rules with scores.

use api::{eval::EvaluationStatus, webhook::EventType};
use entities::evaluation;
use serde_json::json;
use store::evaluations::{self, EvaluationResult};
use uuid::Uuid;

use super::view;
use crate::{
    app::App,
    error::Result,
    failures::scores,
    webhooks::{NewEvent, publish},
};

/// Ends evaluations in one transaction. A failed evaluation is published as an event if a webhook subscribes to
/// it. A score that a failure rule may match enqueues a job.
///
/// # Errors
///
/// Fails when the database fails; nothing has ended then.
pub async fn store(
    app: &App,
    tenant: Uuid,
    results: Vec<(evaluation::Model, EvaluationResult)>,
) -> Result<()> {
    if results.is_empty() {
        return Ok(());
    }
    let now = app.clock.now();
    let subscriptions = match results.iter().any(|(_, it)| it.verdict.is_err()) {
        true => Some(app.access_cache.subscriptions(tenant).await?),
        false => None,
    };
    let rules = app.access_cache.failure_rules(tenant).await?;
    let txn = app.db.begin().await?;
    let ended = evaluations::end(&txn, tenant, results, now).await?;
    let mut jobs = scores::jobs(&rules, tenant, &ended, now);
    queue::enqueue_all(&txn, jobs.clone()).await?;
    if let Some(subscriptions) = subscriptions.filter(|it| it.has(EventType::EvaluationFailed)) {
        let failed = ended.into_iter().filter(|it| it.status == EvaluationStatus::Failed.as_str());
        let events = failed.map(event).collect::<Result<Vec<_>>>()?;
        jobs.extend(publish(&txn, &subscriptions, tenant, &events, now).await?);
    }
    txn.commit().await?;
    app.wake_ups().wake_for(&jobs);
    Ok(())
}

/// Returns the event of a failed evaluation.
fn event(row: evaluation::Model) -> Result<NewEvent> {
    let (event_type, project_id) = (EventType::EvaluationFailed, Some(row.project_id));
    Ok(NewEvent { event_type, project_id, data: json!({"evaluation": view::evaluation(row)?}) })
}
