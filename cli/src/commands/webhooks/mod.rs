//! `loupe webhooks`: webhooks, and tools for the developers of their receivers.

mod change;
mod freshness;
mod listen;
mod mistake;
mod post;
mod receiver;
mod sample;
mod save;
mod secret;
mod signature;
mod temporary;
mod trigger;
mod verify;
mod view;

use api::client::{Client, calls};
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::{
    commands::{
        evals::{view::text_member, wait::combine_results},
        listing::{PageArgs, list},
    },
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
    find,
};
use view::{DELIVERY_VIEW, TEST_VIEW, WEBHOOK_VIEW, is_success, response_sheet, webhook_sheet};

/// Verbs of `webhooks`.
#[derive(Debug, Subcommand)]
pub enum WebhookCommand {
    /// Create a webhook: an https address, events and a secret
    #[command(
        before_help = "Examples:\n  loupe webhooks create https://hooks.example.com/loupe --generate-secret\n  loupe webhooks create https://hooks.example.com/loupe \\\n    --secret-file hook.key --events failure.detected,anomaly.detected\n  loupe webhooks create https://hooks.example.com/loupe --generate-secret \\\n    --secret-file hook.key --json\n",
        after_help = "Events: failure.detected, anomaly.detected, evaluation.failed, control_action.pending_approval,\nprompt_deployment.ab_passed, prompt_deployment.regressed. --url is the address of the Loupe server.\n"
    )]
    Create(change::WebhookCreateArgs),
    /// List the webhooks, newest first
    #[command(
        before_help = "Examples:\n  loupe webhooks list\n  loupe webhooks list --json \\\n    --jq '.webhooks[] | select(.enabled | not) | .url' --raw\n"
    )]
    List,
    /// Show one webhook, without its secret
    #[command(
        before_help = "Examples:\n  loupe webhooks get 5e1f09aa\n  loupe webhooks get https://hooks.example.com/loupe --json --fields events\n"
    )]
    Get(WebhookArgs),
    /// Change address or events of a webhook
    #[command(
        before_help = "Examples:\n  loupe webhooks update 5e1f09aa --address https://hooks.example.com/v2\n  loupe webhooks update 5e1f09aa --events failure.detected,evaluation.failed\n"
    )]
    Update(change::WebhookUpdateArgs),
    /// Enable a webhook, also one that the server disabled
    #[command(before_help = "Examples:\n  loupe webhooks enable 5e1f09aa\n")]
    Enable(WebhookArgs),
    /// Disable a webhook; its pending deliveries are cancelled
    #[command(before_help = "Examples:\n  loupe webhooks disable 5e1f09aa\n")]
    Disable(WebhookArgs),
    /// Delete a webhook; requires the role owner
    #[command(
        before_help = "Examples:\n  loupe webhooks delete 5e1f09aa\n  loupe webhooks delete 5e1f09aa --yes\n"
    )]
    Delete(WebhookArgs),
    /// Replace the secret; the previous one also signs for 24 hours
    #[command(
        before_help = "Examples:\n  loupe webhooks rotate-secret 5e1f09aa\n  loupe webhooks rotate-secret 5e1f09aa --generate-secret --secret-file new.key\n  loupe webhooks rotate-secret 5e1f09aa --secret-file chosen.key\n"
    )]
    RotateSecret(change::WebhookRotateArgs),
    /// Let the server send a ping; code 0 if the receiver accepts it, otherwise 6
    #[command(
        before_help = "Examples:\n  loupe webhooks test 5e1f09aa\n  loupe webhooks test 5e1f09aa --json\n",
        after_help = "Status 0: the receiver could not be reached.\n"
    )]
    Test(WebhookArgs),
    /// List the deliveries of the last 30 days, newest first
    #[command(
        before_help = "Examples:\n  loupe webhooks deliveries 5e1f09aa\n  loupe webhooks deliveries 5e1f09aa --json \\\n    --jq '.deliveries[] | select(.status == \"dead\") | .id' --raw\n"
    )]
    Deliveries(DeliveryListArgs),
    /// Deliver an event again, or make the next attempt of a pending delivery now
    #[command(before_help = "Examples:\n  loupe webhooks redeliver 5e1f09aa c07b44d1\n")]
    Redeliver(RedeliverArgs),
    /// Sign a sample event here and post it to a receiver; code 0 if it accepts it, otherwise 6
    #[command(
        before_help = "Examples:\n  loupe webhooks trigger ping --to http://127.0.0.1:3000/hook \\\n    --secret-file hook.key\n  loupe webhooks trigger failure.detected --to http://127.0.0.1:4400/\n  loupe webhooks trigger evaluation.failed --data data.json \\\n    --to http://127.0.0.1:3000/hook -n\n",
        after_help = "Samples: failure.detected, ping. The server is not involved, so that http and local addresses are\npossible. -n prints the request without sending it.\n"
    )]
    Trigger(trigger::TriggerArgs),
    /// Verify a captured request without any network; code 0 if its signature is valid, otherwise 6
    #[command(
        before_help = "Examples:\n  loupe webhooks verify --signature sha256=5bdcc146 \\\n    --secret-file hook.key < body\n  loupe webhooks verify --headers 001.headers --secret-file hook.key < 001.body\n",
        after_help = "With --headers, one valid signature of X-Service-Signature, X-Service-Signature-Previous and\nwebhook-signature is sufficient.\n"
    )]
    Verify(verify::VerifyArgs),
    /// Receive deliveries on this machine: verify, print, save, forward them
    #[command(
        before_help = "Examples:\n  loupe webhooks listen --secret-file hook.key\n  loupe webhooks listen --forward-to http://127.0.0.1:3000/hook \\\n    --save deliveries\n  loupe webhooks listen --public-url https://hooks.example.com\n  loupe webhooks listen --respond 500 --delay 5s\n  loupe webhooks listen --port 0 --count 1 --for 1m --json\n",
        after_help = "Invalid deliveries are answered with 401 and not forwarded. With --json, the first line is\n{\"ready\": true, \"url\": ...}, and each delivery is another line.\n"
    )]
    Listen(listen::ListenArgs),
}

impl WebhookCommand {
    /// Returns whether the command runs until it is stopped.
    pub fn runs_on(&self) -> bool {
        matches!(self, Self::Listen(_))
    }

    /// Returns whether the command sends requests to clean up after a signal.
    pub fn cleans_up(&self) -> bool {
        matches!(self, Self::Listen(args) if args.public_url.is_some())
    }
}

/// Argument that names a webhook.
#[derive(Debug, Args)]
pub struct WebhookArgs {
    /// Id, its last characters, or the address
    webhook: String,
}

/// Arguments of `webhooks deliveries`.
#[derive(Debug, Args)]
pub struct DeliveryListArgs {
    /// Id, its last characters, or the address
    webhook: String,
    #[command(flatten)]
    page: PageArgs,
}

/// Arguments of `webhooks redeliver`.
#[derive(Debug, Args)]
pub struct RedeliverArgs {
    /// Id, its last characters, or the address
    webhook: String,
    /// The delivery: id, or its last characters
    delivery: String,
}

/// Runs a verb of `webhooks`.
pub async fn run(ctx: &mut Ctx, command: WebhookCommand) -> Result {
    match command {
        WebhookCommand::Trigger(args) => return trigger::run(ctx, args).await,
        WebhookCommand::Verify(args) => return verify::run(ctx, args),
        WebhookCommand::Listen(args) => return listen::run(ctx, args).await,
        _ => {}
    }
    let client = ctx.client()?;
    match command {
        WebhookCommand::Create(args) => change::create(ctx, &client, args).await,
        WebhookCommand::List => {
            ctx.out.check(&WEBHOOK_VIEW)?;
            let empty = "no webhooks; loupe webhooks create --help";
            list(ctx, &client, &WEBHOOK_VIEW, PageArgs::whole(), empty, calls::webhooks).await
        }
        WebhookCommand::Get(args) => {
            ctx.out.check(&WEBHOOK_VIEW)?;
            let id = find::webhook(&client, &args.webhook).await?;
            let webhook = client.value(&calls::webhook(id)).await?;
            ctx.out.whole(&WEBHOOK_VIEW, &webhook, webhook_sheet)
        }
        WebhookCommand::Update(args) => change::update(ctx, &client, args).await,
        WebhookCommand::Enable(args) => change::switch(ctx, &client, &args.webhook, true).await,
        WebhookCommand::Disable(args) => change::switch(ctx, &client, &args.webhook, false).await,
        WebhookCommand::Delete(args) => change::delete(ctx, &client, &args.webhook).await,
        WebhookCommand::RotateSecret(args) => change::rotate_secret(ctx, &client, args).await,
        WebhookCommand::Test(args) => test(ctx, &client, &args.webhook).await,
        WebhookCommand::Deliveries(args) => {
            ctx.out.check(&DELIVERY_VIEW)?;
            let id = find::webhook(&client, &args.webhook).await?;
            let empty = "no deliveries";
            list(ctx, &client, &DELIVERY_VIEW, args.page, empty, |page| calls::webhook_deliveries(id, page))
                .await
        }
        WebhookCommand::Redeliver(args) => redeliver(ctx, &client, &args).await,
        WebhookCommand::Trigger(_) | WebhookCommand::Verify(_) | WebhookCommand::Listen(_) => Ok(()),
    }
}

async fn test(ctx: &mut Ctx, client: &Client, wanted: &str) -> Result {
    ctx.out.check(&TEST_VIEW)?;
    let id = find::webhook(client, wanted).await?;
    let Some(result) = ctx.write(client, &calls::test_webhook(id)).await? else { return Ok(()) };
    let written = ctx.out.whole(&TEST_VIEW, &result, response_sheet);
    let accepted = if is_success(&result) {
        Ok(())
    } else {
        let status = result.get("status").and_then(Value::as_u64).unwrap_or_default();
        let why = Some(text_member(&result, "error")).filter(|it| !it.is_empty());
        let message = post::failure(u16::try_from(status).unwrap_or_default(), why);
        Err(CliError::new(Exit::Failed, message))
    };
    combine_results(written, accepted)
}

async fn redeliver(ctx: &mut Ctx, client: &Client, args: &RedeliverArgs) -> Result {
    ctx.out.check(&DELIVERY_VIEW)?;
    let webhook = find::webhook(client, &args.webhook).await?;
    let delivery = find::delivery(client, webhook, &args.delivery).await?;
    let Some(started) = ctx.write(client, &calls::redeliver(webhook, delivery)).await? else {
        return Ok(());
    };
    ctx.out.note(&format!("{} The event is being delivered again", ctx.out.style.glyphs.ok));
    ctx.out.item(&DELIVERY_VIEW, &started)
}
