//! Sends claimed deliveries of a webhook.

use std::{collections::HashMap, sync::Arc};

use api::webhook::{DeliveryStatus, EventType};
use entities::{webhook, webhook_attempt, webhook_delivery};
use outbound::Bytes;
use store::webhooks::deliveries::{DeliveryState, RESPONSE_BEGINNING_CHARS};
use uuid::Uuid;

use super::MAX_BATCH_MICROS;
use crate::{
    app::App,
    webhooks::{
        schedule::next_attempt,
        send::{SendResult, WebhookMessage, send},
        sending_limits::SendingPermit,
        target::WebhookTarget,
    },
};

/// Claimed deliveries of a webhook.
pub struct Batch<'a> {
    /// The process.
    pub app: &'a App,
    /// The webhook.
    pub webhook: webhook::Model,
    /// The address and the secrets of the webhook.
    pub target: WebhookTarget,
    /// The end of the claim.
    pub claimed_until: i64,
    /// The deliveries in their order.
    pub deliveries: Vec<webhook_delivery::Model>,
    /// The payloads of all events of the run, by ID.
    pub payloads: Arc<HashMap<Uuid, Bytes>>,
    /// The permit to send them.
    pub permit: SendingPermit<'a>,
}

/// The results of the deliveries of a batch.
pub struct EndedBatch<'a> {
    /// The webhook.
    pub webhook: webhook::Model,
    /// The end of the claim.
    pub claimed_until: i64,
    /// The attempted deliveries. Only the last may have failed.
    pub attempted: Vec<DeliveryAttempt>,
    /// The deliveries whose event is no longer stored: it has expired, or its trace was deleted.
    pub without_event: Vec<webhook_delivery::Model>,
    /// The deliveries that were not attempted.
    pub rest: Vec<webhook_delivery::Model>,
    _permit: SendingPermit<'a>,
}

/// A delivery that was attempted.
pub struct DeliveryAttempt {
    /// The delivery as it was before.
    pub delivery: webhook_delivery::Model,
    /// The result.
    pub result: SendResult,
    /// The next attempt after a failure.
    pub next: Option<i64>,
}

impl<'a> Batch<'a> {
    /// Sends the deliveries in their order until one fails.
    pub async fn send(self) -> EndedBatch<'a> {
        let Self { app, webhook, target, claimed_until, deliveries, payloads, permit } = self;
        let started = app.clock.now();
        let mut attempted: Vec<DeliveryAttempt> = Vec::with_capacity(deliveries.len());
        let (mut without_event, mut unsent) = (Vec::new(), None);
        let mut rest = deliveries.into_iter();
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
                    unsent = Some(delivery);
                    break;
                }
            }
        }
        let rest = unsent.into_iter().chain(rest).collect();
        EndedBatch { webhook, claimed_until, attempted, without_event, rest, _permit: permit }
    }
}

impl EndedBatch<'_> {
    /// Returns the attempt that failed, if one did.
    pub fn failed(&self) -> Option<&DeliveryAttempt> {
        self.attempted.last().filter(|it| it.is_failed())
    }

    /// Whether an attempt succeeded.
    pub fn has_success(&self) -> bool {
        self.attempted.first().is_some_and(|it| !it.is_failed())
    }

    /// Whether a response is longer than the part of it that is always kept.
    pub fn has_long_response(&self) -> bool {
        self.attempted.iter().any(DeliveryAttempt::has_long_response)
    }
}

impl DeliveryAttempt {
    fn new(delivery: webhook_delivery::Model, result: SendResult, now: i64) -> Self {
        let next = next_attempt(delivery.id, delivery.attempts + 1, now, result.retry_after);
        Self { delivery, result, next }
    }

    fn is_failed(&self) -> bool {
        self.result.error.is_some()
    }

    /// Returns the next state of the delivery. `is_disabled` states whether the attempt disables the webhook.
    pub fn state(&self, is_disabled: bool) -> DeliveryState {
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

    /// Returns the row of the attempt.
    pub fn row(&self) -> webhook_attempt::Model {
        let Self { delivery, result, next: _ } = self;
        webhook_attempt::Model {
            tenant_id: delivery.tenant_id,
            delivery_id: delivery.id,
            attempt: delivery.attempts + 1,
            webhook_id: delivery.webhook_id,
            started_at: result.started_at,
            status: result.status.into(),
            latency_ms: result.latency_ms,
            error: result.error.clone(),
            response_body: result.body.clone(),
        }
    }
}

/// Attempts a delivery. Returns none when the server stops before there is a result.
async fn attempt(
    app: &App,
    target: &WebhookTarget,
    delivery: &webhook_delivery::Model,
    payload: Bytes,
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
