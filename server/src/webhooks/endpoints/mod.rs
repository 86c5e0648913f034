//! Handlers of webhooks.

mod definition;
mod deliveries;
mod secret;
mod test;

use api::{ErrorCode, Plan, Timestamp, webhook::Webhook};
use entities::webhook;

use crate::{
    access::{Access, Keys},
    audit::AuditAction,
    error::Result,
    http::route::{Route, route},
    webhooks::address::URL_ERRORS,
};

/// A webhook was created.
const WEBHOOK_CREATE: AuditAction = AuditAction::new("webhook.create", "webhook");
/// A webhook was changed.
const WEBHOOK_UPDATE: AuditAction = AuditAction::new("webhook.update", "webhook");
/// A webhook was deleted.
const WEBHOOK_DELETE: AuditAction = AuditAction::new("webhook.delete", "webhook");
/// The secret of a webhook was replaced.
const WEBHOOK_ROTATE_SECRET: AuditAction = AuditAction::new("webhook.rotate_secret", "webhook");
/// An event was delivered again.
const WEBHOOK_REDELIVER: AuditAction = AuditAction::new("webhook.redeliver", "webhook");

/// Returns the routes of webhooks.
pub fn routes() -> Vec<Route> {
    let viewer = Access::viewer().keys(Keys::Full).plan(Plan::Pro);
    let member = Access::member().keys(Keys::Full).plan(Plan::Pro);
    vec![
        route!(definition::list, viewer),
        route!(definition::create, member)
            .audited(WEBHOOK_CREATE)
            .errors(URL_ERRORS)
            .errors(&[ErrorCode::Conflict]),
        route!(definition::detail, viewer),
        route!(definition::update, member).audited(WEBHOOK_UPDATE).errors(URL_ERRORS),
        // On every plan, so that webhooks can be deleted after a downgrade.
        route!(definition::delete, Access::owner().keys(Keys::Full)).audited(WEBHOOK_DELETE),
        // On a lower plan, the handler returns the status 403 of the specification instead of 402.
        route!(test::test, Access::member().keys(Keys::Full))
            .errors(&[ErrorCode::PlanForbidden])
            .errors(&[ErrorCode::WebhookUrlNotHttps, ErrorCode::WebhookUrlPrivateIp]),
        route!(secret::rotate, member).audited(WEBHOOK_ROTATE_SECRET),
        route!(deliveries::deliveries, viewer),
        route!(deliveries::redeliver, member).audited(WEBHOOK_REDELIVER).errors(&[ErrorCode::Conflict]),
    ]
}

fn wire(row: webhook::Model) -> Result<Webhook> {
    let webhook::Model {
        tenant_id: _,
        id,
        url,
        secret: _,
        previous_secret: _,
        previous_until: _,
        events,
        enabled,
        disabled_reason,
        failing_since: _,
        last_delivery_at,
        created_at,
        updated_at,
    } = row;
    Ok(Webhook {
        id,
        url,
        events: serde_json::from_str(&events).map_err(anyhow::Error::from)?,
        enabled,
        disabled_reason,
        last_delivery_at: last_delivery_at.map(Timestamp::from_micros),
        created_at: Timestamp::from_micros(created_at),
        updated_at: Timestamp::from_micros(updated_at),
    })
}
