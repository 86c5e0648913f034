//! `loupe keys create`: creates an API key and writes its secret to the requested place.

use std::path::PathBuf;

use api::{
    Timestamp,
    client::{Client, calls},
    filter::when::{Clock, duration_ms, instant},
    key::{ApiKey, NewApiKey},
};
use clap::Args;
use serde_json::{Value, json};

use super::KEY_VIEW;
use crate::{
    commands::secret_file,
    ctx::Ctx,
    env::now,
    error::{CliError, Result},
    exit::Exit,
    find,
    format::Format,
    prompt,
};

/// Arguments of `keys create`; `--project` selects the project.
#[derive(Debug, Args)]
pub struct KeyCreateArgs {
    /// Descriptive name
    name: String,
    /// Restrict the key to a scope (default: full access)
    #[arg(long, value_parser = ["query"], value_name = "SCOPE")]
    scope: Vec<String>,
    /// Expiry time: a duration such as 90d, a date, RFC 3339
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
    /// Print only the secret
    #[arg(long, conflicts_with_all = ["secret_file", "env_file", "json", "output", "jq"])]
    secret_only: bool,
    /// Write the secret to a new file with mode 0600
    #[arg(long, value_name = "PATH", conflicts_with = "env_file")]
    secret_file: Option<PathBuf>,
    /// Write LOUPE_API_KEY=... to a file with mode 0600, replacing only that line
    #[arg(long, value_name = "PATH")]
    env_file: Option<PathBuf>,
    /// Do nothing if a key of this name exists; its secret is not shown again
    #[arg(long)]
    if_not_exists: bool,
    /// Revoke all other keys of this name afterwards
    #[arg(long, conflicts_with = "if_not_exists")]
    rotate: bool,
}

/// Creates the key.
pub async fn run(ctx: &mut Ctx, args: KeyCreateArgs) -> Result {
    let client = ctx.session_client("creating a key")?;
    let expires_at = args.expires.as_deref().map(expiry).transpose()?;
    let mut same_name_keys = Vec::new();
    if (args.if_not_exists || args.rotate) && !ctx.global.dry_run {
        same_name_keys =
            find::api_keys(&client).await?.into_iter().filter(|key| key.name == args.name).collect();
    }
    if let Some(existing) = same_name_keys.first().filter(|_| args.if_not_exists) {
        return report_existing(ctx, &args, existing);
    }
    // Checks the file before the request: the secret would be lost if the file could not be written
    // afterwards.
    secret_file::check(args.secret_file.as_deref(), args.env_file.as_deref())?;
    if args.rotate && !same_name_keys.is_empty() {
        let what = format!(
            "This creates a new key {} and revokes {} of that name.",
            args.name,
            same_name_keys.len()
        );
        prompt::confirm(ctx, &what, &args.name).await?;
    }
    let project_id =
        if ctx.global.dry_run { None } else { find::current_project(&client, &ctx.settings).await? };
    let scopes = (!args.scope.is_empty()).then(|| args.scope.clone());
    let new = NewApiKey { name: args.name.clone(), scopes, project_id, expires_at };
    let Some(key) = ctx.write(&client, &calls::create_api_key(&new)).await? else {
        return Ok(());
    };
    let Some(secret) = key.get("secret").and_then(Value::as_str).map(str::to_owned) else {
        return Err(lost_secret_error(&args.name, &key));
    };
    let stored = secret_file::store(args.secret_file.as_deref(), args.env_file.as_deref(), &secret);
    let stored = stored.map_err(|error| {
        error.hint(format!(
            "the key was created, but its secret is lost; revoke it: loupe keys revoke {}",
            id(&key)
        ))
    })?;
    // The old keys are revoked last, because clients may use them until the new secret is stored.
    revoke_others(ctx, &client, &same_name_keys).await?;
    show(ctx, &args, key, &secret, stored)
}

/// Parses `--expires`: a time, or a duration from now.
fn expiry(text: &str) -> Result<Timestamp> {
    let now = now();
    let moment = match duration_ms(text) {
        Ok(ms) => i64::try_from(ms)
            .ok()
            .and_then(chrono::TimeDelta::try_milliseconds)
            .and_then(|age| now.checked_add_signed(age))
            .map(|then| then.to_utc().into())
            .ok_or_else(|| format!("`{text}` is too far away")),
        Err(_) => instant(text, &Clock::of(&now)),
    };
    moment.map_err(|why| CliError::usage(format!("--expires: {why}")).hint("for example 90d or 2027-01-31"))
}

fn report_existing(ctx: &mut Ctx, args: &KeyCreateArgs, existing: &ApiKey) -> Result {
    let message = format!("a key named {} exists; its secret can't be shown again", args.name);
    if args.secret_only {
        // A script that expects the secret must not continue with an empty one.
        return Err(CliError::new(Exit::Conflict, message).hint("replace it: --rotate"));
    }
    ctx.out.note(&message);
    let mut value = json!(existing);
    value["created"] = json!(false);
    ctx.out.item(&KEY_VIEW, &value)
}

/// Creates the error for a key whose creation succeeded in an attempt with a lost response. Later
/// responses do not contain the secret.
fn lost_secret_error(name: &str, key: &Value) -> CliError {
    let message = format!("the key {name} was created, but the response with its secret was lost");
    let mut error = CliError::new(Exit::Unexpected, message)
        .hint(format!("replace it: loupe keys create {name} --rotate"));
    error.detail = vec![format!("its secret can't be recovered; its id is {}", id(key))];
    error
}

async fn revoke_others(ctx: &mut Ctx, client: &Client, keys: &[ApiKey]) -> Result {
    for key in keys {
        ctx.write(client, &calls::revoke_api_key(key.id)).await?;
        ctx.out.note(&format!("  Revoked {} ({})", key.prefix, key.id));
    }
    Ok(())
}

fn show(
    ctx: &mut Ctx,
    args: &KeyCreateArgs,
    mut key: Value,
    secret: &str,
    stored: Option<PathBuf>,
) -> Result {
    if args.secret_only {
        return ctx.out.write(&format!("{secret}\n"));
    }
    let prefix = key.get("prefix").and_then(Value::as_str).unwrap_or_default();
    let reach = if args.scope.is_empty() { "full access".to_owned() } else { args.scope.join(", ") };
    let ok = ctx.out.style.glyphs.ok;
    ctx.out.note(&format!("{ok} Created key {} ({reach}), prefix {prefix}", args.name));
    if let Some(path) = &stored {
        ctx.out.note(&format!("  Secret written to {}", path.display()));
        // The secret is in the file, so the output omits it.
        if let Value::Object(members) = &mut key {
            members.remove("secret");
        }
    }
    key["created"] = json!(true);
    if ctx.out.format.is_json() || ctx.out.format == Format::Id || !ctx.global.fields.is_empty() {
        return ctx.out.item(&KEY_VIEW, &key);
    }
    if stored.is_some() {
        return Ok(());
    }
    ctx.out.note("  Secret, shown this once:");
    ctx.out.write(&format!("{secret}\n"))?;
    ctx.out.note("  Store it now. `--secret-file PATH` writes it to a 0600 file instead.");
    Ok(())
}

fn id(key: &Value) -> &str {
    key.get("id").and_then(Value::as_str).unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_expiry_is_a_duration_or_a_date() {
        let in_days =
            (expiry("90d").unwrap().micros() - Timestamp::from(now().to_utc()).micros()) / 86_400_000_000;
        assert!((89..=90).contains(&in_days), "{in_days}");
        assert_eq!(expiry("2027-01-31T00:00:00Z").unwrap().to_string(), "2027-01-31T00:00:00.000000Z");
        assert!(expiry("soon").unwrap_err().message.starts_with("--expires: "));
    }
}
