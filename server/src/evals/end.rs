//! Stores the results of evaluations, publishes events of failed ones, and enqueues what depends on scores: failure rules,
//! policies, remediation regressions and the tests of prompts.

use std::sync::Arc;

use api::{
    eval::{EvaluationFailed, EvaluationStatus},
    webhook::EventType,
};
use entities::{evaluation, job};
use store::{
    Transaction,
    evaluations::{self, EvaluationResult},
};
use uuid::Uuid;

use super::view;
use crate::{
    app::App,
    control::{policy_set::PolicySet, triggers},
    deployments::{cached::ScoredMetrics, jobs as prompt_jobs},
    error::Result,
    failures::{regressions, rule_set::FailureRules, scores},
    subscriptions::Subscriptions,
    webhooks::{NewEvent, publish},
};

/// The definitions of a tenant that react to results of evaluations. They are read before the transaction that stores the
/// results.
pub struct ResultReactions {
    failure_rules: Arc<FailureRules>,
    policies: Arc<PolicySet>,
    scored_metrics: Arc<ScoredMetrics>,
    /// The webhooks, if one of them receives events of failed evaluations.
    subscriptions: Option<Arc<Subscriptions>>,
}

impl ResultReactions {
    /// Reads the definitions.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn read(app: &App, tenant: Uuid) -> Result<Self> {
        let subscriptions = app.access_cache.subscriptions(tenant).await?;
        Ok(Self {
            failure_rules: app.access_cache.failure_rules(tenant).await?,
            policies: app.access_cache.policies(tenant).await?,
            scored_metrics: app.access_cache.scored_metrics(tenant).await?,
            subscriptions: Some(subscriptions).filter(|it| it.has(EventType::EvaluationFailed)),
        })
    }

    /// Returns how many failed evaluations a transaction may store, because each is an event.
    pub fn max_failed_per_transaction(&self) -> usize {
        let max = |it: &Arc<Subscriptions>| it.max_events_per_transaction(EventType::EvaluationFailed);
        self.subscriptions.as_ref().map_or(usize::MAX, max)
    }

    /// Publishes an event for each failed evaluation if a webhook subscribes to these events, and enqueues jobs for scores
    /// that may match a failure rule, trigger a policy, count in the test of a prompt or be a remediation regression.
    /// Returns the jobs, whose pools the caller wakes after the commit.
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn enqueue(
        &self,
        txn: &Transaction,
        tenant: Uuid,
        ended: Vec<evaluation::Model>,
        now: i64,
    ) -> Result<Vec<job::Model>> {
        let mut jobs = scores::jobs(&self.failure_rules, tenant, &ended, now);
        jobs.extend(triggers::jobs(&self.policies, tenant, &ended, now));
        jobs.extend(regressions::jobs(tenant, &ended, now));
        jobs.extend(prompt_jobs::count_scores(&self.scored_metrics, tenant, &ended, now));
        queue::enqueue_all(txn, jobs.clone()).await?;
        if let Some(subscriptions) = &self.subscriptions {
            let failed = ended.into_iter().filter(|it| it.status == EvaluationStatus::Failed.as_str());
            let events = failed.map(event).collect::<Result<Vec<_>>>()?;
            jobs.extend(publish(txn, subscriptions, tenant, &events, now).await?);
        }
        Ok(jobs)
    }
}

/// Ends evaluations, with the reactions to their results. Uses several transactions if one may not publish all of the
/// events.
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
    let reactions = ResultReactions::read(app, tenant).await?;
    let max_results = match results.iter().any(|(_, it)| it.verdict.is_err()) {
        true => reactions.max_failed_per_transaction(),
        false => usize::MAX,
    };
    while !results.is_empty() {
        let rest = results.split_off(results.len().min(max_results));
        let now = app.clock.now();
        let txn = app.db.begin().await?;
        let ended = evaluations::end(&txn, tenant, results, now).await?;
        let jobs = reactions.enqueue(&txn, tenant, ended, now).await?;
        txn.commit().await?;
        app.wake_ups().wake_for(&jobs);
        results = rest;
    }
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
