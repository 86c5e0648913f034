//! A webhook that exists while `webhooks listen` runs.

use api::{
    client::{Auth, Client, calls},
    webhook::{EventType, NewWebhook},
};
use uuid::Uuid;

use super::change::words;
use crate::{commands::evals::view::text_member, ctx::Ctx, error::Result};

/// A webhook that is deleted at the end of the command.
pub struct TemporaryWebhook {
    client: Client,
    id: Uuid,
}

impl TemporaryWebhook {
    /// Creates the webhook. A dry run shows the request and returns `None`.
    pub async fn create(
        ctx: &mut Ctx,
        url: &str,
        events: Option<Vec<EventType>>,
        secret: &str,
    ) -> Result<Option<Self>> {
        let client = ctx.client()?;
        let (url, secret) = (url.to_owned(), secret.to_owned());
        let new = NewWebhook { url, secret, events: words(events), enabled: None };
        let Some(webhook) = ctx.write(&client, &calls::create_webhook(&new)).await? else {
            return Ok(None);
        };
        let id = text_member(&webhook, "id").parse().unwrap_or_default();
        ctx.out
            .note(&format!("{} Created the temporary webhook {id} for {}", ctx.out.style.glyphs.ok, new.url));
        Ok(Some(Self { client, id }))
    }

    /// Deletes the webhook. Only owners may: the message of any other session has the command for an owner.
    pub async fn remove(self, ctx: &mut Ctx) {
        let Self { client, id } = self;
        match client.call(&calls::delete_webhook(id).with(Auth::Session)).await {
            Ok(()) => ctx.out.note(&format!("{} Deleted the temporary webhook {id}", ctx.out.style.glyphs.ok)),
            Err(error) => ctx.out.note(&format!(
                "warning: the temporary webhook still exists: {error}\n  An owner can delete it: loupe webhooks delete {id}"
            )),
        }
    }
}
