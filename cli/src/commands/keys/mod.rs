//! `loupe keys`: API keys. Every command requires a session token.

mod create;

use api::client::calls;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::{
    commands::{
        listing::{PageArgs, list},
        report,
    },
    ctx::Ctx,
    error::Result,
    find,
    output::{Column, View, cell},
    prompt,
};

/// Verbs of `keys`.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Create a key; its secret is shown once
    #[command(
        before_help = "Examples:\n  loupe keys create ci-deploy\n  key=$(loupe keys create ci --secret-only)\n  loupe keys create ci-deploy --rotate --env-file .env.loupe --yes\n  loupe keys create grafana --scope query --expires 90d --if-not-exists --json\n"
    )]
    Create(create::KeyCreateArgs),
    /// List the keys
    #[command(
        before_help = "Examples:\n  loupe keys list\n  loupe keys list --json --jq '.apikeys[].prefix' --raw\n"
    )]
    List,
    /// Show one key, without its secret
    #[command(
        before_help = "Examples:\n  loupe keys get ci-deploy\n  loupe keys get lp_7Qa2f0H3 --json --fields scopes,expires_at\n"
    )]
    Get(KeyArgs),
    /// Revoke a key immediately
    #[command(
        before_help = "Examples:\n  loupe keys revoke ci-deploy\n  loupe keys revoke lp_7Qa2f0H3 --yes\n"
    )]
    Revoke(KeyArgs),
}

/// Argument that names an API key.
#[derive(Debug, Args)]
pub struct KeyArgs {
    /// Name, prefix, id, or the last characters of the id
    key: String,
}

/// Table of API keys.
const KEY_VIEW: View = View {
    plural: "apikeys",
    id: "id",
    columns: &[
        Column::new("NAME", "name", |row, style| cell::text(row, "name", style)).elastic(),
        Column::new("PREFIX", "prefix", |row, style| cell::text(row, "prefix", style)),
        Column::new("SCOPES", "scopes", scopes),
        Column::new("CREATED", "created_at", |row, style| cell::date(row, "created_at", style)).optional(),
        Column::new("EXPIRES", "expires_at", |row, style| cell::date(row, "expires_at", style)),
        Column::new("PROJECT", "project_id", |row, style| cell::text(row, "project_id", style)).wide(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    fields: &[
        "id",
        "name",
        "prefix",
        "scopes",
        "project_id",
        "created_at",
        "expires_at",
        "secret",
        "created",
    ],
};

fn scopes(row: &Value, _: &cell::Style) -> cell::Cell {
    let scopes = row.get("scopes").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let scopes: Vec<_> = scopes.collect();
    cell::Cell::plain(if scopes.is_empty() { "full".to_owned() } else { scopes.join(",") })
}

/// Runs a verb of `keys`.
pub async fn run(ctx: &mut Ctx, command: KeyCommand) -> Result {
    ctx.out.check(&KEY_VIEW)?;
    match command {
        KeyCommand::Create(args) => create::run(ctx, args).await,
        KeyCommand::List => {
            let client = ctx.session_client("listing keys")?;
            list(ctx, &client, &KEY_VIEW, PageArgs::whole(), "no keys", calls::api_keys).await
        }
        KeyCommand::Get(args) => {
            let client = ctx.session_client("showing a key")?;
            let key = find::api_key(&client, &args.key).await?;
            ctx.out.item(&KEY_VIEW, &json!(key))
        }
        KeyCommand::Revoke(args) => revoke(ctx, &args.key).await,
    }
}

async fn revoke(ctx: &mut Ctx, wanted: &str) -> Result {
    prompt::require_answer(ctx)?;
    let client = ctx.session_client("revoking a key")?;
    if ctx.global.dry_run
        && let Ok(id) = wanted.parse()
    {
        return ctx.show_call(&calls::revoke_api_key(id));
    }
    let key = find::api_key(&client, wanted).await?;
    let what =
        format!("This revokes {} ({}) at once. Programs that use it lose access.", key.name, key.prefix);
    prompt::confirm(ctx, &what, &key.name).await?;
    if ctx.write(&client, &calls::revoke_api_key(key.id)).await?.is_none() {
        return Ok(());
    }
    let document = json!({ "id": key.id, "name": key.name, "prefix": key.prefix, "revoked": true });
    report(ctx, &format!("revoked {} ({})", key.name, key.prefix), &key.id.to_string(), document)
}
