//! Handlers that create, show, change and delete webhooks.

use std::sync::Arc;

use api::{
    ErrorCode,
    webhook::{EventType, NewWebhook, Webhook, WebhookChange, WebhookList},
};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use entities::webhook;
use serde_json::json;
use store::{new_id, sealed::WEBHOOK_SECRET, webhooks as table};

use super::{WEBHOOK_CREATE, WEBHOOK_DELETE, WEBHOOK_UPDATE, wire};
use crate::{
    access::Caller,
    app::App,
    audit::{self, AuditEvent},
    error::{Problem, Result, not_found, problem},
    http::{
        query::{Query, path_id},
        read::ApiJson,
    },
    webhooks::{
        address::{check_secret, check_url},
        deliver,
    },
};

/// Maximum number of webhooks of a tenant: every event may have a delivery to each.
const MAX_WEBHOOKS: u64 = 100;

/// List webhooks, newest first.
#[utoipa::path(get, path = "/v1/webhooks", tag = "Webhooks", params(
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = WebhookList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Json<WebhookList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, "webhooks", it)).transpose()?;
    let mut rows = table::page(&app.db.read, tenant, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, "webhooks", &mut rows, limit, |it| (it.created_at, it.id));
    let webhooks = rows.into_iter().map(wire).collect::<Result<_>>()?;
    Ok(Json(WebhookList { webhooks, has_more: next_cursor.is_some(), next_cursor }))
}

/// Show a webhook.
#[utoipa::path(get, path = "/v1/webhooks/{id}", tag = "Webhooks", params(("id" = Uuid, Path, description = "id of the webhook")),
    responses((status = 200, body = Webhook)))]
pub async fn detail(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Webhook>> {
    let row = table::get(app.db.current(), caller.tenant_id, path_id(&id)?).await?;
    Ok(Json(wire(row.ok_or_else(|| not_found("webhook"))?)?))
}

/// Create a webhook.
///
/// Its address must be `https` with a public host. No response contains the secret.
#[utoipa::path(post, path = "/v1/webhooks", tag = "Webhooks", request_body = NewWebhook,
    responses((status = 201, body = Webhook)))]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(body): ApiJson<NewWebhook>,
) -> Result<(StatusCode, Json<Webhook>)> {
    let (tenant, now, id) = (caller.tenant_id, app.clock.now(), new_id());
    check_secret("secret", &body.secret)?;
    let events = match &body.events {
        Some(words) => events_text(words)?,
        None => events_text(&[EventType::FailureDetected.as_str().to_owned()])?,
    };
    check_url(&app, "url", &body.url).await?;
    let place = id.simple().to_string();
    let row = webhook::Model {
        tenant_id: tenant,
        id,
        url: body.url,
        secret: app.sealer.seal(WEBHOOK_SECRET.location(tenant, &place), &body.secret)?,
        previous_secret: None,
        previous_until: None,
        events,
        enabled: body.enabled.unwrap_or(true),
        disabled_reason: None,
        failing_since: None,
        last_delivery_at: None,
        created_at: now,
        updated_at: now,
    };
    let txn = app.db.begin().await?;
    // A lock, so that concurrent requests cannot exceed the limit.
    store::tenants::lock(&txn, tenant).await?;
    if table::count(&txn, tenant).await? >= MAX_WEBHOOKS {
        let message = format!("a tenant may have {MAX_WEBHOOKS} webhooks; delete one that is not needed");
        return Err(problem(ErrorCode::Conflict, message));
    }
    table::add(&txn, row.clone()).await?;
    audit::record(&txn, &caller, AuditEvent::of(WEBHOOK_CREATE).on(id).with(detail_of(&row)), now).await?;
    app.commit(txn).await?;
    Ok((StatusCode::CREATED, Json(wire(row)?)))
}

/// Change a webhook.
///
/// Absent fields keep their values. `enabled: true` enables a webhook that the server disabled. The pending deliveries
/// of a disabled webhook are cancelled.
#[utoipa::path(patch, path = "/v1/webhooks/{id}", tag = "Webhooks", request_body = WebhookChange,
    params(("id" = Uuid, Path, description = "id of the webhook")),
    responses((status = 200, body = Webhook)))]
pub async fn update(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    ApiJson(change): ApiJson<WebhookChange>,
) -> Result<Json<Webhook>> {
    let (tenant, id, now) = (caller.tenant_id, path_id(&id)?, app.clock.now());
    let events = change.events.as_deref().map(events_text).transpose()?;
    if let Some(url) = &change.url {
        check_url(&app, "url", url).await?;
    }
    let txn = app.db.begin().await?;
    let mut row = table::lock(&txn, tenant, id).await?.ok_or_else(|| not_found("webhook"))?;
    row.url = change.url.unwrap_or(row.url);
    row.events = events.unwrap_or(row.events);
    row.updated_at = now;
    if let Some(enabled) = change.enabled {
        row.enabled = enabled;
        row.disabled_reason = None;
        row.failing_since = None;
    }
    table::replace(&txn, row.clone()).await?;
    if !row.enabled {
        queue::enqueue(&txn, tenant, &deliver::DeliverWebhooks { webhooks: vec![id] }, now, now).await?;
    }
    audit::record(&txn, &caller, AuditEvent::of(WEBHOOK_UPDATE).on(id).with(detail_of(&row)), now).await?;
    app.commit(txn).await?;
    Ok(Json(wire(row)?))
}

/// Delete a webhook. Its pending deliveries are cancelled.
#[utoipa::path(delete, path = "/v1/webhooks/{id}", tag = "Webhooks", params(("id" = Uuid, Path, description = "id of the webhook")),
    responses((status = 204, description = "the webhook is deleted")))]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    let (tenant, id, now) = (caller.tenant_id, path_id(&id)?, app.clock.now());
    let txn = app.db.begin().await?;
    if !table::delete(&txn, tenant, id).await? {
        return Err(not_found("webhook"));
    }
    queue::enqueue(&txn, tenant, &deliver::DeliverWebhooks { webhooks: vec![id] }, now, now).await?;
    audit::record(&txn, &caller, AuditEvent::of(WEBHOOK_DELETE).on(id), now).await?;
    app.commit(txn).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the stored text of subscribed events, each once.
fn events_text(words: &[String]) -> Result<String> {
    let mut events: Vec<EventType> = Vec::new();
    for word in words {
        let event =
            word.parse().map_err(|it: api::enums::UnknownWord| Problem::field("events", it.to_string()))?;
        if !events.contains(&event) {
            events.push(event);
        }
    }
    if events.is_empty() {
        return Err(Problem::field("events", "must name at least one event").into());
    }
    Ok(serde_json::to_string(&events).map_err(anyhow::Error::from)?)
}

/// Returns what the audit log shows of a webhook. The path and query of an address may contain a secret.
fn detail_of(row: &webhook::Model) -> serde_json::Value {
    let url = outbound::Url::parse(&row.url).ok();
    let host = url.as_ref().and_then(|it| it.host_str());
    json!({"host": host, "enabled": row.enabled})
}
