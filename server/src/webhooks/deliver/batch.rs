//! Sends claimed deliveries and stores the results in one transaction.

use std::collections::HashMap;

use api::webhook::{DeliveryStatus, EventType};
use entities::{webhook, webhook_attempt, webhook_delivery};
use serde_json::json;
use store::{
    Transaction,
    webhooks::deliveries::{self, DeliveryState, RESPONSE_BEGINNING_CHARS},
};
use uuid::Uuid;

use super::{DeliveryRun, MAX_BATCH_MICROS};
use crate::{
    app::App,
    audit::{self, Actor, AuditAction, AuditEvent},
    error::Result,
    webhooks::{
        schedule::next_attempt,
        send::{SendResult, WebhookMessage, send},
        target::WebhookTarget,
    },
};

/// Maximum time in microseconds by which the other due deliveries are postponed after a failed attempt, unless the
/// receiver demands more.
const MAX_POSTPONE_MICROS: i64 = 60_000_000;
/// Time in microseconds without a success after which a webhook is disabled.
const MAX_FAILING_MICROS: i64 = 5 * 86_400_000_000;
/// Number of responses of a webhook that are kept with their first 4 KiB. Older ones are shortened.
const MAX_LONG_RESPONSES: u16 = 20;
/// The server disabled a webhook.
const WEBHOOK_DISABLE: AuditAction = AuditAction::new("webhook.disable", "webhook");
/// The status with which a receiver declines all further deliveries.
const GONE_STATUS: u16 = 410;

/// Claimed deliveries of a webhook.
pub struct Batch<'a> {
    /// The run of the job.
    pub run: &'a DeliveryRun<'a>,
    /// The webhook.
    pub webhook: webhook::Model,
    /// The end of the claim.
    pub claimed_until: i64,
}

/// The state of the webhook after a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOutcome {
    /// The webhook is still enabled.
    Enabled,
    /// The webhook was disabled.
    Disabled,
}

/// What became of the deliveries of a batch.
struct BatchResult {
    /// The attempted ones. Only the last may have failed.
    attempted: Vec<DeliveryAttempt>,
    /// Those whose event is not stored any more: it has expired, or its trace was deleted.
    without_event: Vec<webhook_delivery::Model>,
    /// Those that were not attempted.
    rest: Vec<webhook_delivery::Model>,
}

/// A delivery that was attempted.
struct DeliveryAttempt {
    delivery: webhook_delivery::Model,
    result: SendResult,
    /// The next attempt after a failure.
    next: Option<i64>,
}

impl DeliveryAttempt {
    fn is_failed(&self) -> bool {
        self.result.error.is_some()
    }
}

impl Batch<'_> {
    /// Sends the deliveries in their order until one fails, and stores the results. Deliveries without an event are
    /// cancelled.
    pub async fn send(&self, claimed: Vec<webhook_delivery::Model>) -> Result<BatchOutcome> {
        let app = self.run.app;
        let target = WebhookTarget::new(app, &self.webhook)?;
        let events: Vec<Uuid> = claimed.iter().map(|it| it.event_id).collect();
        let payloads = deliveries::payloads(&app.db, self.run.tenant, &events).await?;
        let started = app.clock.now();
        let mut attempted: Vec<DeliveryAttempt> = Vec::with_capacity(claimed.len());
        let mut without_event = Vec::new();
        let mut rest = claimed.into_iter();
        while attempted.last().is_none_or(|it| !it.is_failed())
            && app.clock.now() - started < MAX_BATCH_MICROS
            && let Some(delivery) = rest.next()
        {
            let Some(payload) = payloads.get(&delivery.event_id).cloned() else {
                without_event.push(delivery);
                continue;
            };
            match attempt(app, &target, &delivery, payload).await {
                Some(result) => attempted.push(DeliveryAttempt::new(delivery, result, app.clock.now())),
                // The server stops.
                None => {
                    let rest = std::iter::once(delivery).chain(rest).collect();
                    return self.store(BatchResult { attempted, without_event, rest }).await;
                }
            }
        }
        self.store(BatchResult { attempted, without_event, rest: rest.collect() }).await
    }

    /// Stores the results of the attempted deliveries, cancels those without an event, and releases the rest.
    async fn store(&self, result: BatchResult) -> Result<BatchOutcome> {
        let BatchResult { attempted, without_event, rest } = result;
        let (app, tenant, now) = (self.run.app, self.run.tenant, self.run.app.clock.now());
        let failed = attempted.last().filter(|it| it.is_failed());
        let txn = app.db.begin().await?;
        let succeeded = attempted.iter().rev().find(|it| !it.is_failed()).map(|it| it.result.started_at);
        let reason = failed.and_then(|it| self.disabled_reason(&it.result, succeeded.is_some(), now));
        let disabled = match reason {
            Some(reason) => self.disabled_row(&txn, reason, now).await?,
            None => None,
        };
        let postponed_to = failed.map(|it| postponed_to(it, now));
        let mut states: HashMap<DeliveryState, Vec<Uuid>> = HashMap::new();
        for it in &attempted {
            let state = it.state(disabled.is_some());
            states.entry(state).or_default().push(it.delivery.id);
        }
        for it in without_event {
            let (status, due_at) = (DeliveryStatus::Cancelled, None);
            let state = DeliveryState { status, due_at, attempts: it.attempts };
            states.entry(state).or_default().push(it.id);
        }
        for it in rest {
            let due_at = Some(postponed_to.unwrap_or(now));
            let state = DeliveryState { status: DeliveryStatus::Pending, due_at, attempts: it.attempts };
            states.entry(state).or_default().push(it.id);
        }
        let is_failed = failed.is_some();
        for (state, ids) in states {
            deliveries::change(&txn, tenant, &ids, self.claimed_until, state, now).await?;
        }
        if let Some(until) = postponed_to {
            deliveries::postpone(&txn, tenant, self.webhook.id, now, until).await?;
        }
        let has_long_response = attempted.iter().any(DeliveryAttempt::has_long_response);
        deliveries::add_attempts(&txn, attempted.into_iter().map(DeliveryAttempt::into_row).collect())
            .await?;
        if has_long_response {
            deliveries::shorten_responses(&txn, tenant, self.webhook.id, MAX_LONG_RESPONSES).await?;
        }
        let failing_since = match (succeeded, is_failed) {
            (Some(_), false) => None,
            // No attempt was made.
            (None, false) => self.webhook.failing_since,
            (Some(_), true) => Some(now),
            (None, true) => self.webhook.failing_since.or(Some(now)),
        };
        if succeeded.is_some() || failing_since != self.webhook.failing_since {
            let id = self.webhook.id;
            store::webhooks::record_attempts(&txn, tenant, id, succeeded, failing_since).await?;
        }
        match disabled {
            Some(row) => {
                let event =
                    AuditEvent::of(WEBHOOK_DISABLE).on(row.id).with(json!({"reason": row.disabled_reason}));
                audit::record(&txn, Actor::system(tenant), event, now).await?;
                let last_delivery_at = succeeded.or(row.last_delivery_at);
                store::webhooks::replace(&txn, webhook::Model { failing_since, last_delivery_at, ..row })
                    .await?;
                app.commit(txn).await?;
                Ok(BatchOutcome::Disabled)
            }
            None => {
                txn.commit().await?;
                Ok(BatchOutcome::Enabled)
            }
        }
    }

    /// Returns why a failed attempt disables the webhook. `has_success` states whether an earlier attempt of the batch
    /// succeeded.
    fn disabled_reason(&self, result: &SendResult, has_success: bool, now: i64) -> Option<String> {
        if result.status == GONE_STATUS {
            return result.error.clone();
        }
        let failing_since = self.webhook.failing_since.filter(|_| !has_success);
        let failing = failing_since.is_some_and(|it| now - it >= MAX_FAILING_MICROS);
        let error = result.error.as_deref().filter(|_| failing)?;
        Some(format!("no delivery succeeded for five days; the last attempt failed: {error}"))
    }

    /// Returns the locked row of the webhook, disabled; none if a user changed it, or another run had its first success
    /// or failure, since this run read it.
    async fn disabled_row(
        &self,
        txn: &Transaction,
        reason: String,
        now: i64,
    ) -> Result<Option<webhook::Model>> {
        let (tenant, id) = (self.run.tenant, self.webhook.id);
        let row = store::webhooks::lock(txn, tenant, id).await?;
        let is_unchanged = |it: &webhook::Model| {
            it.updated_at == self.webhook.updated_at && it.failing_since == self.webhook.failing_since
        };
        let Some(row) = row.filter(|it| it.enabled && is_unchanged(it)) else {
            return Ok(None);
        };
        tracing::warn!(%tenant, webhook = %id, reason, "a webhook is disabled");
        Ok(Some(webhook::Model { enabled: false, disabled_reason: Some(reason), updated_at: now, ..row }))
    }
}

impl DeliveryAttempt {
    fn new(delivery: webhook_delivery::Model, result: SendResult, now: i64) -> Self {
        let next = next_attempt(delivery.id, delivery.attempts + 1, now, result.retry_after);
        Self { delivery, result, next }
    }

    /// Returns the next state of the delivery. `is_disabled` states whether the attempt disables the webhook.
    fn state(&self, is_disabled: bool) -> DeliveryState {
        let attempts = self.delivery.attempts + 1;
        let (status, due_at) = match (self.is_failed(), is_disabled, self.next) {
            (false, ..) => (DeliveryStatus::Delivered, None),
            (true, true, _) => (DeliveryStatus::Cancelled, None),
            (true, false, Some(at)) => (DeliveryStatus::Pending, Some(at)),
            (true, false, None) => (DeliveryStatus::Dead, None),
        };
        DeliveryState { status, due_at, attempts }
    }

    fn has_long_response(&self) -> bool {
        self.result.body.as_ref().is_some_and(|it| it.chars().nth(RESPONSE_BEGINNING_CHARS).is_some())
    }

    fn into_row(self) -> webhook_attempt::Model {
        let Self { delivery, result, next: _ } = self;
        webhook_attempt::Model {
            tenant_id: delivery.tenant_id,
            delivery_id: delivery.id,
            attempt: delivery.attempts + 1,
            webhook_id: delivery.webhook_id,
            started_at: result.started_at,
            status: result.status.into(),
            latency_ms: result.latency_ms,
            error: result.error,
            response_body: result.body,
        }
    }
}

/// Attempts a delivery. Returns none when the server stops before there is a result.
async fn attempt(
    app: &App,
    target: &WebhookTarget,
    delivery: &webhook_delivery::Model,
    payload: String,
) -> Option<SendResult> {
    let Ok(event_type) = delivery.event_type.parse::<EventType>() else {
        return Some(of_unknown_type(app.clock.now()));
    };
    let message = WebhookMessage { event: delivery.event_id, event_type, delivery: delivery.id, payload };
    app.stopping().run_until_cancelled(send(app, target, message)).await
}

/// Returns the result of a delivery whose event a newer version of the server stored.
fn of_unknown_type(now: i64) -> SendResult {
    SendResult {
        status: 0,
        body: None,
        error: Some("this version of the server does not know the type of the event".to_owned()),
        started_at: now,
        latency_ms: 0,
        retry_after: None,
    }
}

/// Returns until when the other due deliveries are postponed after a failed attempt.
fn postponed_to(failed: &DeliveryAttempt, now: i64) -> i64 {
    let at_most = now + MAX_POSTPONE_MICROS.max(failed.result.retry_after.unwrap_or(0));
    failed.next.unwrap_or(at_most).min(at_most)
}
