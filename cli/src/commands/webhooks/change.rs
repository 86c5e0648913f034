//! `loupe webhooks create`, `update`, `enable`, `disable`, `delete` and `rotate-secret`: change webhooks.

use api::{
    client::{Auth, Client, calls},
    webhook::{EventType, NewWebhook, NewWebhookSecret, WebhookChange},
};
use clap::Args;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    secret::{NewSecret, NewSecretArgs},
    view::{ROTATION_VIEW, WEBHOOK_VIEW, webhook_sheet},
};
use crate::{
    commands::{evals::view::text_member, report},
    ctx::Ctx,
    error::{CliError, Result},
    find,
    format::Format,
    output::View,
    prompt,
};

/// Arguments of `webhooks create`.
#[derive(Debug, Args)]
pub struct WebhookCreateArgs {
    /// The https address that receives the requests
    address: String,
    /// Events to subscribe to, separated by commas (default: failure.detected)
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    events: Option<Vec<EventType>>,
    #[command(flatten)]
    secret: NewSecretArgs,
    /// Create the webhook disabled
    #[arg(long)]
    disabled: bool,
}

/// Arguments of `webhooks update`. Fields that are not given keep their values.
#[derive(Debug, Args)]
pub struct WebhookUpdateArgs {
    /// Id, its last characters, or the address
    webhook: String,
    /// New https address
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Replaces the subscribed events, separated by commas
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    events: Option<Vec<EventType>>,
}

/// Arguments of `webhooks rotate-secret`.
#[derive(Debug, Args)]
pub struct WebhookRotateArgs {
    /// Id, its last characters, or the address
    webhook: String,
    #[command(flatten)]
    secret: NewSecretArgs,
}

/// Returns the names of events.
pub fn words(events: Option<Vec<EventType>>) -> Option<Vec<String>> {
    events.map(|events| events.into_iter().map(|it| it.to_string()).collect())
}

/// Creates a webhook.
pub async fn create(ctx: &mut Ctx, client: &Client, args: WebhookCreateArgs) -> Result {
    ctx.out.check(&WEBHOOK_VIEW)?;
    let new_secret = args.secret.of_new_webhook(ctx)?;
    let new = NewWebhook {
        url: args.address,
        secret: new_secret.secret.clone(),
        events: words(args.events),
        enabled: args.disabled.then_some(false),
    };
    let Some(webhook) = ctx.write(client, &calls::create_webhook(&new)).await? else {
        return Ok(());
    };
    let id = text_member(&webhook, "id").to_owned();
    ctx.out.note(&format!("{} Created the webhook {id} for {}", ctx.out.style.glyphs.ok, new.url));
    if !new_secret.is_generated {
        return ctx.out.whole(&WEBHOOK_VIEW, &webhook, webhook_sheet);
    }
    show_secret(ctx, &WEBHOOK_VIEW, webhook, &new_secret)
}

/// Replaces the secret of a webhook.
pub async fn rotate_secret(ctx: &mut Ctx, client: &Client, args: WebhookRotateArgs) -> Result {
    ctx.out.check(&ROTATION_VIEW)?;
    let new_secret = args.secret.of_rotation(ctx)?;
    let id = find::webhook(client, &args.webhook).await?;
    // The secret is generated here, so that a lost response does not lose it.
    let new = NewWebhookSecret { secret: Some(new_secret.secret.clone()) };
    let Some(rotated) = ctx.write(client, &calls::rotate_webhook_secret(id, &new)).await? else {
        return Ok(());
    };
    let until = text_member(&rotated, "previous_secret_expires_at");
    ctx.out.note(&format!(
        "{} Replaced the secret of {}; requests are also signed with the previous one until {until}",
        ctx.out.style.glyphs.ok, args.webhook
    ));
    if !new_secret.is_generated {
        return ctx.out.item(&ROTATION_VIEW, &rotated);
    }
    show_secret(ctx, &ROTATION_VIEW, rotated, &new_secret)
}

/// Stores a generated secret in its file, or shows it: as the only line on stdout, or in the JSON document.
fn show_secret(ctx: &mut Ctx, view: &View, mut row: Value, new: &NewSecret) -> Result {
    let stored = new.store().map_err(|error| {
        error.hint(format!(
            "the secret is in use, but lost here; replace it: loupe webhooks rotate-secret {}",
            text_member(&row, "id")
        ))
    })?;
    match &stored {
        Some(path) => ctx.out.note(&format!("  Secret written to {}", path.display())),
        None => row["secret"] = json!(new.secret),
    }
    if ctx.out.format.is_json() || ctx.out.format == Format::Id || !ctx.global.fields.is_empty() {
        return ctx.out.item(view, &row);
    }
    if stored.is_some() {
        return Ok(());
    }
    ctx.out.note("  Secret, shown this once:");
    ctx.out.write(&format!("{}\n", new.secret))?;
    ctx.out.note("  Store it now. `--generate-secret --secret-file PATH` writes it to a 0600 file instead.");
    Ok(())
}

/// Changes the given fields of a webhook.
pub async fn update(ctx: &mut Ctx, client: &Client, args: WebhookUpdateArgs) -> Result {
    let change = WebhookChange { url: args.address, events: words(args.events), enabled: None };
    if change == WebhookChange::default() {
        return Err(CliError::usage("nothing to change")
            .hint("set --address or --events; `loupe webhooks disable` stops deliveries"));
    }
    changed(ctx, client, &args.webhook, &change, "Changed").await
}

/// Enables or disables a webhook.
pub async fn switch(ctx: &mut Ctx, client: &Client, wanted: &str, enabled: bool) -> Result {
    let change = WebhookChange { enabled: Some(enabled), ..WebhookChange::default() };
    changed(ctx, client, wanted, &change, if enabled { "Enabled" } else { "Disabled" }).await
}

async fn changed(ctx: &mut Ctx, client: &Client, wanted: &str, change: &WebhookChange, verb: &str) -> Result {
    ctx.out.check(&WEBHOOK_VIEW)?;
    let id: Uuid = find::webhook(client, wanted).await?;
    let Some(webhook) = ctx.write(client, &calls::update_webhook(id, change)).await? else {
        return Ok(());
    };
    ctx.out.note(&format!("{} {verb} the webhook {wanted}", ctx.out.style.glyphs.ok));
    ctx.out.whole(&WEBHOOK_VIEW, &webhook, webhook_sheet)
}

/// Deletes a webhook.
pub async fn delete(ctx: &mut Ctx, client: &Client, wanted: &str) -> Result {
    prompt::require_answer(ctx)?;
    let id = find::webhook(client, wanted).await?;
    let what = format!("This deletes the webhook {wanted} ({id}). Its pending deliveries are cancelled.");
    prompt::confirm(ctx, &what, "delete").await?;
    // The session of an owner is sent rather than an API key: only owners may delete webhooks.
    if ctx.write(client, &calls::delete_webhook(id).with(Auth::Session)).await?.is_none() {
        return Ok(());
    }
    report(ctx, &format!("deleted the webhook {id}"), &id.to_string(), json!({ "id": id, "deleted": true }))
}
