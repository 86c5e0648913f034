//! `loupe config`: shows every setting of a run and its source. `change.rs` changes the file; `loupe
//! context` can also set the values of a context.

mod change;

use std::path::PathBuf;

use api::profile;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::{
    config::Sourced,
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
    output::{Column, View, cell, pager},
};

/// Verbs of `config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// List every value in effect and its source
    #[command(before_help = "Examples:\n  loupe config list\n  loupe config list -c prod --json\n")]
    List,
    /// Print one value
    #[command(before_help = "Examples:\n  loupe config get url\n  loupe config get output.format\n")]
    Get(ConfigKeyArgs),
    /// Set a value in config.toml
    #[command(
        before_help = "Examples:\n  loupe config set output.format json\n  loupe config set output.time utc\n  loupe config set filters.slow 'latency:>=5s from:-1h'\n  loupe config set contexts.prod.protected true\n  loupe config set keys.list.pause ctrl-f\n"
    )]
    Set(change::ConfigSetArgs),
    /// Remove a value from config.toml
    #[command(
        before_help = "Examples:\n  loupe config unset output.format\n  loupe config unset filters.slow\n"
    )]
    Unset(ConfigKeyArgs),
    /// Print the path of config.toml
    #[command(before_help = "Examples:\n  loupe config path\n  cp \"$(loupe config path)\" backup.toml\n")]
    Path,
    /// Open config.toml in VISUAL or EDITOR; an invalid file is not stored
    #[command(before_help = "Examples:\n  loupe config edit\n  EDITOR=nano loupe config edit\n")]
    Edit,
}

/// The name of a value.
#[derive(Debug, Args)]
pub struct ConfigKeyArgs {
    /// Name, as `loupe config list` shows it
    key: String,
}

const CONFIG_VIEW: View = View {
    plural: "config",
    id: "key",
    columns: &[
        Column::new("KEY", "key", |row, style| cell::text(row, "key", style)),
        Column::new("VALUE", "value", |row, style| cell::text(row, "value", style)).elastic(),
        Column::new("SOURCE", "source", |row, style| cell::text(row, "source", style)).elastic(),
    ],
    fields: &["key", "value", "source"],
};

/// Runs a verb of `config`.
pub async fn run(ctx: &mut Ctx, command: ConfigCommand) -> Result {
    ctx.out.check(&CONFIG_VIEW)?;
    match command {
        ConfigCommand::List => {
            let rows = effective(ctx);
            ctx.out.list(&CONFIG_VIEW, json!({ "config": rows }))
        }
        ConfigCommand::Get(args) => get(ctx, &args.key),
        ConfigCommand::Set(args) => change::set(ctx, &args),
        ConfigCommand::Unset(args) => change::unset(ctx, &args.key),
        ConfigCommand::Path => {
            let path = folder(ctx)?.join(profile::CONFIG_FILE);
            ctx.out.write(&format!("{}\n", path.display()))
        }
        ConfigCommand::Edit => change::edit(ctx).await,
    }
}

/// Returns the folder of the profile without reading its files.
fn folder(ctx: &Ctx) -> Result<PathBuf> {
    let missing = || CliError::usage("no folder for the configuration").hint("set LOUPE_CONFIG_DIR or HOME");
    profile::config_dir(|name| ctx.env.var(name).map(str::to_owned)).ok_or_else(missing)
}

fn get(ctx: &mut Ctx, key: &str) -> Result {
    let rows = effective(ctx);
    let named = |row: &&Value| row.get("key").and_then(Value::as_str) == Some(key);
    let Some(row) = rows.iter().find(named) else {
        let keys: Vec<_> = rows.iter().filter_map(|row| row.get("key")?.as_str()).collect();
        return Err(CliError::new(Exit::NotFound, format!("there is no value `{key}`"))
            .hint(format!("values: {}", keys.join(", "))));
    };
    if ctx.out.format.is_json() || !ctx.global.fields.is_empty() {
        return ctx.out.item(&CONFIG_VIEW, row);
    }
    let value = cell::Cell::plain(cell::raw(row.get("value"))).text;
    ctx.out.write(&format!("{value}\n"))
}

/// Returns every value in effect, the most important first.
fn effective(ctx: &Ctx) -> Vec<Value> {
    let settings = &ctx.settings;
    let mut rows = Vec::new();
    let mut add = |key: &str, value: Value, source: &str| {
        rows.push(json!({ "key": key, "value": value, "source": source }));
    };
    let mut text = |key: &str, it: Option<&Sourced<String>>, show: fn(&str) -> String| match it {
        Some(it) => add(key, show(&it.value).into(), &it.source),
        None => add(key, Value::Null, "not set"),
    };
    text("context", settings.context_name.as_ref(), str::to_owned);
    text("url", Some(&settings.url), str::to_owned);
    text("project", settings.project.as_ref(), str::to_owned);
    text("api_key", settings.api_key.as_ref(), public_part);
    text("session_token", settings.session.as_ref(), |_| "set".to_owned());

    let context = settings.context_name.as_ref().map(|name| format!("context {}", name.value));
    let context = context.as_deref().unwrap_or("default");
    add("protected", settings.context.protected.into(), context);
    add("read_only", settings.context.read_only.into(), context);
    add("output.format", settings.format.value.word().into(), &settings.format.source);
    let time = settings.config.output.time.as_deref();
    let source = if time.is_some() { profile::CONFIG_FILE } else { "default" };
    add("output.time", time.unwrap_or("local").into(), source);
    match &settings.timeout {
        Some(limit) => add("timeout", format!("{:?}", limit.value).into(), &limit.source),
        None => add("timeout", "30s for each request".into(), "default"),
    }
    add("retries", settings.attempts.value.into(), &settings.attempts.source);
    let (command, source) = pager::command(&ctx.env);
    add("pager", command.into(), source);
    for (name, filter) in &settings.filters {
        let own = settings.config.filters.get(name) == Some(filter);
        add(
            &format!("filters.{name}"),
            filter.as_str().into(),
            if own { profile::CONFIG_FILE } else { ".loupe.toml" },
        );
    }
    for (section, table) in &settings.config.rest {
        for (name, value) in table.as_table().into_iter().flatten() {
            add(&format!("{section}.{name}"), json!(value), profile::CONFIG_FILE);
        }
    }
    rows
}

/// Returns the public part of an API key: the prefix, which the server also shows.
fn public_part(key: &str) -> String {
    let start: String = key.chars().take(11).collect();
    format!("{start}...")
}
