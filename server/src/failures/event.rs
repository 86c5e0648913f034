//! The webhook event `failure.detected`.

use std::collections::HashMap;

use api::{
    Timestamp,
    failure::{FailedTrace, FailureDetected},
    webhook::EventType,
};
use entities::{job, trace};
use semantics::money;
use store::{Transaction, traces};
use uuid::Uuid;

use super::{
    firing::{self, FiredTrace, MatchCause, RuleMatch},
    ready_match,
    recorder::beginning,
    view,
};
use crate::{
    app::App,
    error::Result,
    subscriptions::Subscriptions,
    webhooks::{self, NewEvent},
};

/// Stores matches of rules that were found outside of a transaction, publishes the events of the rules that fire, and
/// compares the traces in `moved` again when they are ready, in one transaction.
///
/// # Errors
///
/// Fails when the database fails; nothing is stored then.
pub async fn fire(
    app: &App,
    tenant: Uuid,
    traces: &HashMap<Uuid, trace::Model>,
    mut matches: Vec<RuleMatch>,
    moved: &[trace::Model],
) -> Result<()> {
    let now = app.clock.now();
    let subscriptions = app.access_cache.subscriptions(tenant).await?;
    let txn = app.db.begin().await?;
    let ids: Vec<Uuid> = traces.keys().copied().collect();
    let locked: HashMap<Uuid, i64> = traces::lock_created(&txn, tenant, &ids).await?.into_iter().collect();
    matches.retain(|it| locked.get(&it.trace) == traces.get(&it.trace).map(|it| &it.created_at));
    let fired = firing::fire(&txn, tenant, matches, now).await?;
    let deliveries = publish(&txn, &subscriptions, tenant, traces, fired, now).await?;
    ready_match::enqueue_moved(&txn, tenant, moved, now).await?;
    txn.commit().await?;
    app.wake_ups().wake_for(&deliveries);
    Ok(())
}

/// Publishes one event for each trace for which rules fired, in the caller's transaction. Returns the jobs that deliver
/// the events.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn publish(
    txn: &Transaction,
    subscriptions: &Subscriptions,
    tenant: Uuid,
    traces: &HashMap<Uuid, trace::Model>,
    fired: Vec<FiredTrace>,
    now: i64,
) -> Result<Vec<job::Model>> {
    let mut events = Vec::with_capacity(fired.len());
    for it in fired {
        let Some(trace) = traces.get(&it.trace) else { continue };
        let (project_id, trace_id) = (Some(trace.project_id), Some(trace.id));
        let data = serde_json::to_value(detected(trace, it)?).map_err(anyhow::Error::from)?;
        events.push(NewEvent { event_type: EventType::FailureDetected, project_id, trace_id, data });
    }
    Ok(webhooks::publish(txn, subscriptions, tenant, &events, now).await?)
}

fn detected(trace: &trace::Model, fired: FiredTrace) -> Result<FailureDetected> {
    let (failure, evaluation) = match fired.cause {
        MatchCause::Failure(row) => (Some(view::failure(*row)?), None),
        MatchCause::Score(score) => (None, Some(score)),
    };
    Ok(FailureDetected { failure, evaluation, trace: summary(trace), rules: fired.rules })
}

fn summary(trace: &trace::Model) -> FailedTrace {
    FailedTrace {
        id: trace.id,
        project_id: trace.project_id,
        external_id: trace.external_id.clone(),
        session_id: trace.session_id.clone(),
        user_id: trace.user_id.clone(),
        name: trace.name.clone(),
        model: trace.model.clone(),
        error: trace.error.as_deref().map(|it| beginning(it).to_owned()),
        started_at: Timestamp::from_micros(trace.started_at),
        ended_at: trace.ended_at.map(Timestamp::from_micros),
        latency_ms: trace.latency_ms,
        cost: trace.cost.map(money::to_usd),
        total_token_count: trace.total_tokens,
        span_count: trace.span_count,
    }
}
