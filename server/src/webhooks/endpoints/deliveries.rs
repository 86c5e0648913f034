//! Handlers of the delivery log.

use std::sync::Arc;

use api::{
    ErrorCode, Timestamp,
    webhook::{DeliveryAttempt, DeliveryStatus, WebhookDelivery, WebhookDeliveryList},
};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use entities::{webhook_attempt, webhook_delivery};
use store::webhooks::{self as table, deliveries as log};
use uuid::Uuid;

use super::WEBHOOK_REDELIVER;
use crate::{
    access::Caller,
    app::App,
    audit::{self, AuditEvent},
    error::{Result, not_found, problem},
    http::query::{Query, path_id},
    webhooks::{deliver, event},
};

/// Number of deliveries whose attempts are read at once: their responses have at most 2 MiB.
const READ_TOGETHER: usize = 20;
/// Size in bytes of the responses on a page at which it ends early.
const MAX_PAGE_BYTES: usize = 1024 * 1024;
/// If a pending delivery is due later than this many microseconds from now, no worker has claimed it.
const MAX_CLAIM_MICROS: i64 = 60_000_000;

/// List the deliveries to a webhook, newest first.
///
/// Deliveries are kept for 30 days, with every attempt. The newest 20 long responses of a webhook are kept with their first
/// 4 KiB, the others with their first 128 characters. A page with large responses may have fewer rows than `limit`.
#[utoipa::path(get, path = "/v1/webhooks/{id}/deliveries", tag = "Webhooks", params(
    ("id" = Uuid, Path, description = "id of the webhook"),
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = WebhookDeliveryList)))]
pub async fn deliveries(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    query: Query,
) -> Result<Json<WebhookDeliveryList>> {
    let (tenant, id, limit) = (caller.tenant_id, path_id(&id)?, query.limit()?);
    let scope = format!("webhook_deliveries {id}");
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, &scope, it)).transpose()?;
    let db = app.db.current();
    table::get(db, tenant, id).await?.ok_or_else(|| not_found("webhook"))?;
    let rows = log::page(db, tenant, id, after, limit as u64 + 1).await?;
    let position = |it: &WebhookDelivery| (it.created_at.micros(), it.id);
    let (mut shown, mut bytes) = (Vec::with_capacity(rows.len()), 0);
    for block in rows.chunks(READ_TOGETHER) {
        if bytes >= MAX_PAGE_BYTES {
            break;
        }
        let ids: Vec<Uuid> = block.iter().map(|it| it.id).collect();
        let mut attempts = log::attempts(db, tenant, &ids).await?;
        for row in block {
            let (own, others) = attempts.into_iter().partition(|it| it.delivery_id == row.id);
            attempts = others;
            let delivery = wire(row.clone(), own)?;
            let body = |it: &DeliveryAttempt| it.response_body.as_ref().map_or(0, String::len);
            bytes += delivery.attempts.iter().map(body).sum::<usize>();
            shown.push(delivery);
        }
    }
    let complete = shown.len().min(limit);
    let more = rows.len() > complete;
    shown.truncate(complete);
    let next_cursor = shown.last().filter(|_| more).map(|it| app.cursors.sign(tenant, &scope, position(it)));
    Ok(Json(WebhookDeliveryList { deliveries: shown, has_more: next_cursor.is_some(), next_cursor }))
}

/// Deliver an event again.
///
/// A finished delivery is repeated by a new one of the same event, with the same `id` in the payload. The next
/// attempt of a pending delivery is made now. 409 if the event is no longer stored: it has expired, or its trace was
/// deleted.
#[utoipa::path(post, path = "/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver", tag = "Webhooks", params(
    ("id" = Uuid, Path, description = "id of the webhook"),
    ("delivery_id" = Uuid, Path, description = "id of the delivery")),
    responses((status = 202, description = "the delivery, which is being sent", body = WebhookDelivery)))]
pub async fn redeliver(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, delivery_id)): Path<(String, String)>,
) -> Result<(StatusCode, Json<WebhookDelivery>)> {
    let (tenant, id, delivery_id) = (caller.tenant_id, path_id(&id)?, path_id(&delivery_id)?);
    let now = app.clock.now();
    let txn = app.db.begin().await?;
    let webhook = table::get(&txn, tenant, id).await?.ok_or_else(|| not_found("webhook"))?;
    let row = log::lock(&txn, tenant, id, delivery_id).await?;
    let mut row = row.ok_or_else(|| not_found("delivery"))?;
    if !webhook.enabled {
        return Err(problem(ErrorCode::Conflict, "the webhook is disabled; enable it and try again"));
    }
    let event = log::event(&txn, tenant, row.event_id).await?;
    let event = event.ok_or_else(|| {
        let gone = "the event is not stored any more, because it has expired or its trace was deleted";
        problem(ErrorCode::Conflict, format!("{gone}; it can't be delivered again"))
    })?;
    if row.status == DeliveryStatus::Pending.as_str() {
        if row.due_at.is_some_and(|it| it > now + MAX_CLAIM_MICROS) {
            log::make_due(&txn, &row, now).await?;
            row.due_at = Some(now);
        }
    } else {
        row = event::delivery(&event, id, now);
        log::add(&txn, &[], std::slice::from_ref(&row)).await?;
    }
    let jobs = vec![deliver::job(tenant, vec![id], now)];
    queue::enqueue_all(&txn, jobs.clone()).await?;
    let detail = serde_json::json!({"delivery_id": delivery_id, "event_id": row.event_id});
    audit::record(&txn, &caller, AuditEvent::of(WEBHOOK_REDELIVER).on(id).with(detail), now).await?;
    let attempts = log::attempts(&txn, tenant, &[row.id]).await?;
    txn.commit().await?;
    app.wake_ups().wake_for(&jobs);
    Ok((StatusCode::ACCEPTED, Json(wire(row, attempts)?)))
}

fn wire(row: webhook_delivery::Model, attempts: Vec<webhook_attempt::Model>) -> Result<WebhookDelivery> {
    let bad = |it: api::enums::UnknownWord| anyhow::Error::from(it);
    let webhook_delivery::Model {
        tenant_id: _,
        id,
        webhook_id,
        event_id,
        event_type,
        status,
        attempts: _,
        due_at,
        created_at,
        completed_at,
    } = row;
    Ok(WebhookDelivery {
        id,
        webhook_id,
        event_id,
        event_type: event_type.parse().map_err(bad)?,
        status: status.parse().map_err(bad)?,
        attempts: attempts.into_iter().map(attempt).collect(),
        next_attempt_at: due_at.map(Timestamp::from_micros),
        created_at: Timestamp::from_micros(created_at),
        completed_at: completed_at.map(Timestamp::from_micros),
    })
}

fn attempt(row: webhook_attempt::Model) -> DeliveryAttempt {
    let webhook_attempt::Model {
        tenant_id: _,
        delivery_id: _,
        attempt,
        webhook_id: _,
        started_at,
        status,
        latency_ms,
        error,
        response_body,
    } = row;
    DeliveryAttempt {
        attempt: u32::try_from(attempt).unwrap_or_default(),
        started_at: Timestamp::from_micros(started_at),
        status: u16::try_from(status).unwrap_or_default(),
        latency_ms,
        error,
        response_body,
    }
}
