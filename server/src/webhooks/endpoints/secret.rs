//! The handler that replaces the secret of a webhook.

use std::sync::Arc;

use api::{
    Timestamp,
    webhook::{NewWebhookSecret, RotatedSecret},
};
use axum::{
    Json,
    extract::{Path, State},
};
use entities::webhook;
use store::sealed::{WEBHOOK_PREVIOUS_SECRET, WEBHOOK_SECRET};

use super::WEBHOOK_ROTATE_SECRET;
use crate::{
    access::Caller,
    app::App,
    audit::{self, AuditEvent},
    error::{Result, not_found},
    http::{query::path_id, read::ApiJson},
    webhooks::{address::check_secret, signature},
};

/// Time in microseconds for which the previous secret also signs.
const PREVIOUS_SECRET_TTL_MICROS: i64 = 86_400_000_000;

/// Replace the secret of a webhook.
///
/// The new secret signs from now on. For 24 hours, requests are also signed with the previous secret, so that the
/// receiver can be changed without losing a request. Without `secret`, the server generates one and shows it once.
#[utoipa::path(post, path = "/v1/webhooks/{id}/rotate-secret", tag = "Webhooks", request_body = NewWebhookSecret,
    params(("id" = Uuid, Path, description = "id of the webhook")),
    responses((status = 200, body = RotatedSecret)))]
pub async fn rotate(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    ApiJson(body): ApiJson<NewWebhookSecret>,
) -> Result<Json<RotatedSecret>> {
    let (tenant, id, now) = (caller.tenant_id, path_id(&id)?, app.clock.now());
    let (secret, generated) = match body.secret {
        Some(secret) => {
            check_secret("secret", &secret)?;
            (secret, None)
        }
        None => {
            let secret = signature::generate_secret().map_err(|it| anyhow::anyhow!("no randomness: {it}"))?;
            (secret.clone(), Some(secret))
        }
    };
    let place = id.simple().to_string();
    let txn = app.db.begin().await?;
    let row = store::webhooks::lock(&txn, tenant, id).await?.ok_or_else(|| not_found("webhook"))?;
    let previous = app.sealer.unseal(WEBHOOK_SECRET.location(tenant, &place), &row.secret)?;
    let previous_until = now + PREVIOUS_SECRET_TTL_MICROS;
    let row = webhook::Model {
        secret: app.sealer.seal(WEBHOOK_SECRET.location(tenant, &place), &secret)?,
        previous_secret: Some(app.sealer.seal(WEBHOOK_PREVIOUS_SECRET.location(tenant, &place), &previous)?),
        previous_until: Some(previous_until),
        updated_at: now,
        ..row
    };
    store::webhooks::replace(&txn, row).await?;
    audit::record(&txn, &caller, AuditEvent::of(WEBHOOK_ROTATE_SECRET).on(id), now).await?;
    txn.commit().await?;
    let previous_secret_expires_at = Timestamp::from_micros(previous_until);
    Ok(Json(RotatedSecret { id, secret: generated, previous_secret_expires_at }))
}
