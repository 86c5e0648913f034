//! Handlers of webhooks.

mod definition;
mod deliveries;
mod secret;
mod test;

use api::{ErrorCode, Plan, Timestamp, webhook::Webhook};
use entities::webhook;

use crate::{
    access::{Access, Keys},
    app::App,
    audit::AuditAction,
    error::{Problem, Result},
    http::route::{Route, route},
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

/// Error codes of an address that is rejected.
const URL_ERRORS: &[ErrorCode] =
    &[ErrorCode::WebhookUrlNotHttps, ErrorCode::WebhookUrlPrivateIp, ErrorCode::WebhookUrlUnresolvable];

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

/// Validates a secret.
fn check_secret(secret: &str) -> Result<()> {
    /// Number of characters that a secret has at least.
    const MIN_SECRET: usize = 16;
    /// Maximum number of characters of a secret.
    const MAX_SECRET: usize = 1_000;
    if (MIN_SECRET..=MAX_SECRET).contains(&secret.chars().count()) {
        return Ok(());
    }
    let message = format!("must have {MIN_SECRET} to {MAX_SECRET} characters");
    Err(Problem::field("secret", message).into())
}

/// Fails if requests can't be sent to an address.
async fn check_url(app: &App, url: &str) -> Result<()> {
    match app.outbound.check(url).await {
        Ok(_) => Ok(()),
        Err(rejection) => Err(url_problem(rejection, url).into()),
    }
}

/// Returns the error for a rejected address.
fn url_problem(rejection: outbound::AddressRejection, url: &str) -> Problem {
    use outbound::AddressRejection::{NotHttps, Private, Unresolvable};
    let code = match rejection {
        NotHttps => ErrorCode::WebhookUrlNotHttps,
        Private => ErrorCode::WebhookUrlPrivateIp,
        Unresolvable => ErrorCode::WebhookUrlUnresolvable,
    };
    Problem { code, ..Problem::field("url", outbound::remedy::describe(rejection, url)) }
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
