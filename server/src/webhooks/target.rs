//! A webhook as requests need it: its address and its secrets, unsealed.

use entities::webhook;
use outbound::Url;
use store::sealed::{WEBHOOK_PREVIOUS_SECRET, WEBHOOK_SECRET};

use crate::{app::App, error::Result};

/// The address of a webhook and the secrets that sign its requests. It cannot be formatted, so that no secret is
/// logged.
pub struct WebhookTarget {
    /// The address.
    pub url: Url,
    /// The secret.
    pub secret: String,
    /// The previous secret, until it expires.
    pub previous_secret: Option<String>,
}

impl WebhookTarget {
    /// Unseals the secrets of a webhook.
    ///
    /// # Errors
    ///
    /// Fails when a secret cannot be unsealed.
    pub fn new(app: &App, row: &webhook::Model) -> Result<Self> {
        let id = row.id.simple().to_string();
        let secret = app.sealer.unseal(WEBHOOK_SECRET.location(row.tenant_id, &id), &row.secret)?;
        let is_valid = row.previous_until.is_some_and(|it| app.clock.now() < it);
        let previous_secret = row
            .previous_secret
            .as_deref()
            .filter(|_| is_valid)
            .map(|it| app.sealer.unseal(WEBHOOK_PREVIOUS_SECRET.location(row.tenant_id, &id), it));
        let url = Url::parse(&row.url).map_err(anyhow::Error::from)?;
        Ok(Self { url, secret, previous_secret: previous_secret.transpose()? })
    }
}
