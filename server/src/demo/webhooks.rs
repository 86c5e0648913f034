//! The webhooks of the demo, which deliver to its own receiver.

use api::webhook::EventType;
use entities::webhook;
use store::{new_id, sealed::WEBHOOK_SECRET};

use super::{
    DemoTenant,
    webhook_receiver::{BUSY_PATH, GONE_PATH, RELIABLE_PATH, WebhookReceiver},
};
use crate::app::App;

/// The secret of all webhooks of the demo: their receiver checks no signature.
const DEMO_SECRET: &str = "demo-webhook-secret";
const DAY: i64 = 86_400_000_000;

/// Creates the webhooks, before the failures that they report.
pub(super) async fn create(app: &App, tenant: &DemoTenant, receiver: &WebhookReceiver) -> anyhow::Result<()> {
    let failures = EventType::FailureDetected;
    let webhooks = [
        (
            RELIABLE_PATH,
            vec![
                failures,
                EventType::AnomalyDetected,
                EventType::ControlActionPendingApproval,
                EventType::PromptDeploymentAbPassed,
                EventType::PromptDeploymentRegressed,
            ],
            30,
        ),
        (BUSY_PATH, vec![failures], 12),
        (GONE_PATH, vec![failures], 41),
    ];
    let txn = app.db.begin().await?;
    for (path, events, age_days) in webhooks {
        let (id, created_at) = (new_id(), app.clock.now() - age_days * DAY);
        let location = id.simple().to_string();
        let row = webhook::Model {
            tenant_id: tenant.tenant_id,
            id,
            url: receiver.url(path),
            secret: app.sealer.seal(WEBHOOK_SECRET.location(tenant.tenant_id, &location), DEMO_SECRET)?,
            previous_secret: None,
            previous_until: None,
            events: serde_json::to_string(&events)?,
            enabled: true,
            disabled_reason: None,
            failing_since: None,
            last_delivery_at: None,
            created_at,
            updated_at: created_at,
        };
        store::webhooks::add(&txn, row).await?;
    }
    Ok(txn.commit().await?)
}
