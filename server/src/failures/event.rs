//! The webhook event `failure.detected`.

use std::collections::{BTreeSet, HashMap};

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

/// Stores matches of rules that were found outside of a transaction, publishes the events of the rules that fire,
/// and compares the traces in `moved` again when they are ready. Uses several transactions if one may not publish
/// the events of all traces.
///
/// # Errors
///
/// Fails when the database fails. A repeated call stores the matches that are not stored yet.
pub async fn fire(
    app: &App,
    tenant: Uuid,
    traces: &HashMap<Uuid, trace::Model>,
    mut matches: Vec<RuleMatch>,
    moved: &[trace::Model],
) -> Result<()> {
    if !moved.is_empty() {
        let txn = app.db.begin().await?;
        ready_match::enqueue_moved(&txn, tenant, moved, app.clock.now()).await?;
        txn.commit().await?;
    }
    let subscriptions = app.access_cache.subscriptions(tenant).await?;
    matches.sort_by_key(|it| it.at);
    let max_traces = subscriptions.max_events_per_transaction(EventType::FailureDetected);
    for group in split_by_trace(matches, |it| it.trace, max_traces) {
        fire_group(app, tenant, &subscriptions, traces, group).await?;
    }
    Ok(())
}

/// Splits items into groups with whole traces, each with at most `max_traces`, in the order in which the traces appear.
pub fn split_by_trace<T>(items: Vec<T>, trace: impl Fn(&T) -> Uuid, max_traces: usize) -> Vec<Vec<T>> {
    let (mut groups, mut group_of) = (Vec::<Vec<T>>::new(), HashMap::new());
    for item in items {
        let next = group_of.len() / max_traces.max(1);
        let group: usize = *group_of.entry(trace(&item)).or_insert(next);
        match groups.get_mut(group) {
            Some(items) => items.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

async fn fire_group(
    app: &App,
    tenant: Uuid,
    subscriptions: &Subscriptions,
    traces: &HashMap<Uuid, trace::Model>,
    mut matches: Vec<RuleMatch>,
) -> Result<()> {
    let now = app.clock.now();
    let txn = app.db.begin().await?;
    let ids: BTreeSet<Uuid> = matches.iter().map(|it| it.trace).collect();
    let ids: Vec<Uuid> = ids.into_iter().collect();
    let locked: HashMap<Uuid, i64> = traces::lock_created(&txn, tenant, &ids).await?.into_iter().collect();
    matches.retain(|it| locked.get(&it.trace) == traces.get(&it.trace).map(|it| &it.created_at));
    let fired = firing::fire(&txn, tenant, matches, now).await?;
    let deliveries = publish(&txn, subscriptions, tenant, traces, fired, now).await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits pairs of a trace and a number.
    fn split(items: &[(u128, u32)], max_traces: usize) -> Vec<Vec<(u128, u32)>> {
        split_by_trace(items.to_vec(), |it| Uuid::from_u128(it.0), max_traces)
    }

    #[test]
    fn groups_have_whole_traces_and_a_limited_number_of_them() {
        let items = [(1, 0), (2, 1), (1, 2), (3, 3), (2, 4), (4, 5), (5, 6), (1, 7)];
        let pairs = [vec![(1, 0), (2, 1), (1, 2), (2, 4), (1, 7)], vec![(3, 3), (4, 5)], vec![(5, 6)]];
        assert_eq!(split(&items, 2), pairs);
        assert_eq!(split(&items, 5), [items.to_vec()]);
        assert_eq!(split(&items, usize::MAX), [items.to_vec()]);
        assert_eq!(split(&items, 1).len(), 5);
        assert!(split(&[], 2).is_empty());
    }
}
