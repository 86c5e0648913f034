//! Stores the results of batches in one transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use api::webhook::DeliveryStatus;
use entities::webhook;
use serde_json::json;
use store::webhooks::deliveries::{self, DeliveryState};
use uuid::Uuid;

use super::batch::{DeliveryAttempt, EndedBatch};
use crate::{
    app::App,
    audit::{self, Actor, AuditAction, AuditEvent},
    error::Result,
};

/// Maximum time in microseconds by which the other due deliveries of a failing receiver are postponed, unless it demands
/// more.
const MAX_POSTPONE_MICROS: i64 = 60_000_000;
/// Time in microseconds without a success after which a webhook is disabled.
const MAX_FAILING_MICROS: i64 = 5 * 86_400_000_000;
/// Number of responses of a webhook that are kept with their first 4 KiB. Older ones are shortened.
const MAX_LONG_RESPONSES: u16 = 20;
/// The server disabled a webhook.
const WEBHOOK_DISABLE: AuditAction = AuditAction::new("webhook.disable", "webhook");
/// The status with which a receiver declines all further deliveries.
const GONE_STATUS: u16 = 410;

/// Stores the results of the attempted deliveries, cancels those without an event, and releases the rest. Returns the
/// webhooks that the results disable.
///
/// The transaction locks the webhooks first, in the order of their IDs: runs with the same webhooks change the same rows,
/// and without the lock two of them could wait for each other.
pub async fn store(app: &App, tenant: Uuid, ended: &[EndedBatch<'_>], now: i64) -> Result<BTreeSet<Uuid>> {
    let txn = app.db.begin().await?;
    let ids: BTreeSet<Uuid> = ended.iter().map(|it| it.webhook.id).collect();
    let rows = store::webhooks::lock_all(&txn, tenant, &ids.into_iter().collect::<Vec<_>>()).await?;
    let rows: BTreeMap<Uuid, webhook::Model> = rows.into_iter().map(|it| (it.id, it)).collect();
    let mut states: HashMap<(i64, DeliveryState), Vec<Uuid>> = HashMap::new();
    let mut disabled: BTreeMap<Uuid, webhook::Model> = BTreeMap::new();
    let mut postponed: Vec<(Uuid, i64)> = Vec::new();
    for batch in ended {
        let row = rows.get(&batch.webhook.id);
        let postponed_to = postponed_to(batch, row.and_then(|it| it.failing_since), now);
        postponed.extend(postponed_to.map(|it| (batch.webhook.id, it)));
        let row = row.and_then(|it| disabled_row(batch, it, now));
        let is_disabled = row.is_some();
        disabled.extend(row.map(|it| (it.id, it)));
        for (delivery, state) in next_states(batch, is_disabled, postponed_to.unwrap_or(now)) {
            states.entry((batch.claimed_until, state)).or_default().push(delivery);
        }
    }
    for ((claimed_until, state), ids) in states {
        deliveries::change(&txn, tenant, &ids, claimed_until, state, now).await?;
    }
    for (webhook, until) in postponed {
        deliveries::postpone(&txn, tenant, webhook, now, until).await?;
    }
    let attempts = ended.iter().flat_map(|it| &it.attempted).map(DeliveryAttempt::row);
    deliveries::add_attempts(&txn, attempts.collect()).await?;
    for batch in ended.iter().filter(|it| it.has_long_response()) {
        deliveries::shorten_responses(&txn, tenant, batch.webhook.id, MAX_LONG_RESPONSES).await?;
    }
    let mut outcomes: BTreeMap<(bool, Option<i64>), Vec<Uuid>> = BTreeMap::new();
    for batch in ended {
        let before = rows.get(&batch.webhook.id).and_then(|it| it.failing_since);
        let (has_success, since) = (batch.has_success(), failing_since(batch, before, now));
        if has_success || since != before {
            outcomes.entry((has_success, since)).or_default().push(batch.webhook.id);
        }
    }
    for ((has_success, failing_since), webhooks) in outcomes {
        let succeeded_at = has_success.then_some(now);
        store::webhooks::record_attempts(&txn, tenant, &webhooks, succeeded_at, failing_since).await?;
    }
    for row in disabled.values() {
        tracing::warn!(%tenant, webhook = %row.id, reason = row.disabled_reason, "a webhook is disabled");
        let event = AuditEvent::of(WEBHOOK_DISABLE).on(row.id).with(json!({"reason": row.disabled_reason}));
        audit::record(&txn, Actor::system(tenant), event, now).await?;
        store::webhooks::disable(&txn, row).await?;
    }
    if disabled.is_empty() {
        txn.commit().await?;
    } else {
        // Which webhooks receive events is cached.
        app.commit(txn).await?;
    }
    Ok(disabled.into_keys().collect())
}

/// Returns the next state of each delivery of a batch. Those that were not attempted are due at `rest_due_at`.
fn next_states(batch: &EndedBatch<'_>, is_disabled: bool, rest_due_at: i64) -> Vec<(Uuid, DeliveryState)> {
    let due_at = Some(rest_due_at);
    let attempted = batch.attempted.iter().map(|it| (it.delivery.id, it.state(is_disabled)));
    let cancelled = batch.without_event.iter().map(|it| {
        (it.id, DeliveryState { status: DeliveryStatus::Cancelled, due_at: None, attempts: it.attempts })
    });
    let rest = batch
        .rest
        .iter()
        .map(|it| (it.id, DeliveryState { status: DeliveryStatus::Pending, due_at, attempts: it.attempts }));
    attempted.chain(cancelled).chain(rest).collect()
}

/// Returns the time since which all attempts of a webhook have failed.
fn failing_since(batch: &EndedBatch<'_>, before: Option<i64>, now: i64) -> Option<i64> {
    match (batch.has_success(), batch.failed().is_some()) {
        (true, false) => None,
        // No attempt was made.
        (false, false) => before,
        (true, true) => Some(now),
        (false, true) => before.or(Some(now)),
    }
}

/// Returns the row of the webhook, disabled, if the failed attempt of a batch disables it. `locked` is its locked row: a
/// webhook that a user changed, or that had its first success or failure in another run meanwhile, stays enabled.
fn disabled_row(batch: &EndedBatch<'_>, locked: &webhook::Model, now: i64) -> Option<webhook::Model> {
    let read = &batch.webhook;
    let is_unchanged = locked.updated_at == read.updated_at && locked.failing_since == read.failing_since;
    if !locked.enabled || !is_unchanged {
        return None;
    }
    let failed = &batch.failed()?.result;
    let error = failed.error.as_deref()?;
    let reason = if failed.status == GONE_STATUS {
        error.to_owned()
    } else {
        let failing_since = read.failing_since.filter(|_| !batch.has_success())?;
        if now - failing_since < MAX_FAILING_MICROS {
            return None;
        }
        format!("no delivery succeeded for five days; the last attempt failed: {error}")
    };
    Some(webhook::Model { enabled: false, disabled_reason: Some(reason), updated_at: now, ..locked.clone() })
}

/// Returns until when the other due deliveries of the webhook are postponed: after two failed attempts in a row, or when
/// the receiver demands a delay. A single failure postpones nothing, so that a receiver that fails now and then still gets
/// all events in time.
fn postponed_to(batch: &EndedBatch<'_>, failing_since: Option<i64>, now: i64) -> Option<i64> {
    let failed = batch.failed()?;
    let is_repeated = failing_since.is_some() && !batch.has_success();
    if !is_repeated && failed.result.retry_after.is_none() {
        return None;
    }
    let at_most = now + MAX_POSTPONE_MICROS.max(failed.result.retry_after.unwrap_or(0));
    Some(failed.next.unwrap_or(at_most).min(at_most))
}
