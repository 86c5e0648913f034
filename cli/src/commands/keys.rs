//! `loupe keys`: API keys. All of it needs a session.

use std::path::PathBuf;

use api::{
    client::{
        Client,
        calls::{self, Page},
    },
    key::{ApiKey, NewApiKey},
};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::{
    commands::secret_file,
    ctx::Ctx,
    error::{CliError, Result, session_needed},
    find,
    output::{Column, Format, View, cell},
    prompt,
};

/// Verbs of `keys`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a key; its secret is shown once
    #[command(
        before_help = "Examples:\n  loupe keys create ci-deploy\n  key=$(loupe keys create ci --secret-only)\n  loupe keys create grafana --scope query --if-not-exists --json\n"
    )]
    Create(CreateArgs),
    /// List the keys
    #[command(
        before_help = "Examples:\n  loupe keys list\n  loupe keys list --json --jq '.apikeys[].prefix' --raw\n"
    )]
    List,
    /// Revoke a key, at once
    #[command(
        before_help = "Examples:\n  loupe keys revoke ci-deploy\n  loupe keys revoke lp_7Qa2f0H3 --yes\n"
    )]
    Revoke(RevokeArgs),
}

/// Arguments of `keys create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Descriptive name
    name: String,
    /// Restrict the key; without it, it has full access
    #[arg(long, value_parser = ["query"], value_name = "SCOPE")]
    scope: Vec<String>,
    /// When it stops working: a date or RFC 3339
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
    /// Print the secret and nothing else
    #[arg(long, conflicts_with_all = ["secret_file", "env_file", "json", "output", "jq"])]
    secret_only: bool,
    /// Write the secret to a new file with mode 0600
    #[arg(long, value_name = "PATH", conflicts_with = "env_file")]
    secret_file: Option<PathBuf>,
    /// Put LOUPE_API_KEY=... into a file with mode 0600, replacing only that line
    #[arg(long, value_name = "PATH")]
    env_file: Option<PathBuf>,
    /// Do nothing if a key of this name exists; its secret can't come back
    #[arg(long)]
    if_not_exists: bool,
    /// Revoke the other keys of this name afterwards
    #[arg(long, conflicts_with = "if_not_exists")]
    rotate: bool,
}

/// Arguments of `keys revoke`.
#[derive(Debug, Args)]
pub struct RevokeArgs {
    /// Id, the last characters of an id, prefix or name
    key: String,
}

const VIEW: View = View {
    plural: "apikeys",
    id: "id",
    columns: &[
        Column::new("NAME", "name", |row, style| cell::text(row, "name", style)).elastic(),
        Column::new("PREFIX", "prefix", |row, style| cell::text(row, "prefix", style)),
        Column::new("SCOPES", "scopes", scopes),
        Column::new("CREATED", "created_at", |row, style| cell::date(row, "created_at", style)),
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
pub async fn run(ctx: &mut Ctx, command: Command) -> Result {
    ctx.out.check(&VIEW)?;
    match command {
        Command::Create(args) => create(ctx, args).await,
        Command::List => {
            let client = session_client(ctx, "listing keys")?;
            let rows = super::all_pages(ctx, &client, VIEW.plural, |cursor| {
                calls::api_keys(&Page { limit: Some(200), cursor })
            })
            .await?;
            ctx.out.list(&VIEW, rows)
        }
        Command::Revoke(args) => revoke(ctx, &args.key).await,
    }
}

/// A client, if there is a session; an API key reaches none of this.
fn session_client(ctx: &Ctx, subject: &str) -> Result<Client> {
    let client = ctx.client()?;
    if client.has_session() || ctx.global.dry_run { Ok(client) } else { Err(session_needed(subject)) }
}

async fn create(ctx: &mut Ctx, args: CreateArgs) -> Result {
    let client = session_client(ctx, "creating a key")?;
    let clock = api::filter::when::Clock::of(&crate::config::env::now());
    let expires_at = args.expires.as_deref().map(|text| api::filter::when::instant(text, &clock));
    let expires_at = expires_at.transpose().map_err(|why| CliError::usage(format!("--expires: {why}")))?;
    // A file that can't be written is found out before there is a secret to lose.
    secret_file::check(args.secret_file.as_deref(), args.env_file.as_deref())?;

    let mut namesakes = Vec::new();
    if (args.if_not_exists || args.rotate) && !ctx.global.dry_run {
        namesakes = find::api_keys(&client).await?.into_iter().filter(|key| key.name == args.name).collect();
    }
    if let Some(existing) = namesakes.first().filter(|_| args.if_not_exists) {
        ctx.out.note(&format!("a key named {} exists; its secret can't come back", args.name));
        let mut value = json!(existing);
        value["created"] = json!(false);
        return if args.secret_only { Ok(()) } else { ctx.out.item(&VIEW, &value) };
    }
    if args.rotate && !namesakes.is_empty() {
        let what =
            format!("This makes a new key {} and revokes {} of that name.", args.name, namesakes.len());
        prompt::confirm(ctx, &what, None).await?;
    }
    let project_id =
        if ctx.global.dry_run { None } else { find::current_project(&client, &ctx.settings).await? };
    let scopes = (!args.scope.is_empty()).then(|| args.scope.clone());
    let new = NewApiKey { name: args.name.clone(), scopes, project_id, expires_at };
    let Some(mut answer) = ctx.write(&client, &calls::create_api_key(&new)).await? else {
        return Ok(());
    };
    let secret = answer.get("secret").and_then(Value::as_str).unwrap_or_default().to_owned();
    let stored = secret_file::store(args.secret_file.as_deref(), args.env_file.as_deref(), &secret)?;
    revoke_others(ctx, &client, &namesakes).await?;

    let prefix = answer.get("prefix").and_then(Value::as_str).unwrap_or_default().to_owned();
    let reach = if args.scope.is_empty() { "full access".to_owned() } else { args.scope.join(", ") };
    let ok = ctx.out.style.glyphs.ok;
    if args.secret_only {
        return ctx.out.write(&(secret + "\n"));
    }
    ctx.out.note(&format!("{ok} Created key {} ({reach}), prefix {prefix}", args.name));
    if let Some(path) = &stored {
        ctx.out.note(&format!("  Secret written to {}", path.display()));
        // It is in the file, so that it need not be anywhere else.
        if let Value::Object(members) = &mut answer {
            members.remove("secret");
        }
    }
    answer["created"] = json!(true);
    if ctx.out.format.is_json() || ctx.out.format == Format::Id || !ctx.global.fields.is_empty() {
        return ctx.out.item(&VIEW, &answer);
    }
    if stored.is_some() {
        return Ok(());
    }
    ctx.out.note("  Secret, shown this once:");
    ctx.out.write(&(secret + "\n"))?;
    ctx.out.note("  Store it now. `--secret-file PATH` writes it to a 0600 file instead.");
    Ok(())
}

async fn revoke_others(ctx: &mut Ctx, client: &Client, keys: &[ApiKey]) -> Result {
    for key in keys {
        ctx.write(client, &calls::revoke_api_key(key.id)).await?;
        ctx.out.note(&format!("  Revoked {} ({})", key.prefix, key.id));
    }
    Ok(())
}

async fn revoke(ctx: &mut Ctx, wanted: &str) -> Result {
    let client = session_client(ctx, "revoking a key")?;
    if ctx.global.dry_run {
        if let Ok(id) = wanted.parse() {
            return ctx.show_call(&calls::revoke_api_key(id));
        }
        return Err(CliError::usage("with --dry-run, give the whole id of the key"));
    }
    let key = find::api_key(&client, wanted).await?;
    let what = format!("This revokes {} ({}) at once; whatever uses it stops working.", key.name, key.prefix);
    let typed = ctx.settings.context.protected.then_some(key.name.as_str());
    prompt::confirm(ctx, &what, typed).await?;
    ctx.write(&client, &calls::revoke_api_key(key.id)).await?;
    ctx.out.note(&format!("revoked {} ({})", key.name, key.prefix));
    if ctx.out.format.is_json() {
        return ctx
            .out
            .json(&json!({ "id": key.id, "name": key.name, "prefix": key.prefix, "revoked": true }));
    }
    Ok(())
}
