//! `loupe context`: named servers in `config.toml`.

use api::profile::{Context, Credentials};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::{
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
    output::{Column, View, cell},
    prompt,
};

/// Verbs of `context`.
#[derive(Debug, Subcommand)]
pub enum ContextCommand {
    /// List the contexts
    #[command(before_help = "Examples:\n  loupe context list\n  loupe context list -o id\n")]
    List,
    /// Make a context the current one
    #[command(before_help = "Examples:\n  loupe context use prod\n")]
    Use(ContextNameArgs),
    /// Show a context and the source of each value
    #[command(before_help = "Examples:\n  loupe context show\n  loupe context show prod --json\n")]
    Show(ContextShowArgs),
    /// Create or change a context
    #[command(
        before_help = "Examples:\n  loupe context set prod --url https://loupe.example.internal --protected true\n  loupe context set prod --project checkout-bot\n"
    )]
    Set(ContextSetArgs),
    /// Delete a context and its stored credentials
    #[command(before_help = "Examples:\n  loupe context delete old --yes\n")]
    Delete(ContextNameArgs),
}

/// The name of a context.
#[derive(Debug, Args)]
pub struct ContextNameArgs {
    /// The context
    name: String,
}

/// Arguments of `context show`.
#[derive(Debug, Args)]
pub struct ContextShowArgs {
    /// The context; default: the current one
    name: Option<String>,
}

/// Arguments of `context set`; `--url` and `--project` are flags of every command.
#[derive(Debug, Args)]
pub struct ContextSetArgs {
    /// The context
    name: String,
    /// Require typing a name to confirm dangerous changes
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    protected: Option<bool>,
    /// Refuse every write
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    read_only: Option<bool>,
}

const CONTEXT_VIEW: View = View {
    plural: "contexts",
    id: "name",
    columns: &[
        Column::new("", "current", current),
        Column::new("NAME", "name", |row, style| cell::text(row, "name", style)).elastic(),
        Column::new("URL", "url", |row, style| cell::text(row, "url", style)).elastic(),
        Column::new("PROJECT", "project", |row, style| cell::text(row, "project", style)).elastic(),
        Column::new("STORED", "stored", |row, style| cell::text(row, "stored", style)).elastic(),
        Column::new("PROTECTED", "protected", |row, style| cell::text(row, "protected", style)).elastic(),
        Column::new("READ-ONLY", "read_only", |row, style| cell::text(row, "read_only", style)).elastic(),
    ],
    fields: &["name", "current", "url", "project", "stored", "protected", "read_only"],
};

fn current(row: &Value, style: &cell::Style) -> cell::Cell {
    let current = row.get("current").and_then(Value::as_bool).unwrap_or_default();
    cell::Cell::plain(if current { style.glyphs.cursor } else { " " })
}

/// Runs a verb of `context`.
pub async fn run(ctx: &mut Ctx, command: ContextCommand) -> Result {
    match command {
        ContextCommand::List => list(ctx),
        ContextCommand::Use(args) => use_context(ctx, &args.name),
        ContextCommand::Show(args) => show(ctx, args.name),
        ContextCommand::Set(args) => set(ctx, args),
        ContextCommand::Delete(args) => delete(ctx, &args.name).await,
    }
}

fn list(ctx: &mut Ctx) -> Result {
    let credentials = Credentials::load(ctx.settings.profile_dir()?)?;
    let contexts = ctx.settings.config.contexts.iter();
    let rows: Vec<Value> = contexts.map(|(name, context)| row(ctx, &credentials, name, context)).collect();
    if rows.is_empty() {
        ctx.out.note("no contexts yet: `loupe auth login --url URL` creates one");
    }
    ctx.out.list(&CONTEXT_VIEW, json!({ "contexts": rows }))
}

fn row(ctx: &Ctx, credentials: &Credentials, name: &str, context: &Context) -> Value {
    let secrets = credentials.contexts.get(name);
    let stored: Vec<&str> = [
        secrets.and_then(|secrets| secrets.api_key.as_ref()).map(|_| "key"),
        secrets.and_then(|secrets| secrets.session_token.as_ref()).map(|_| "session"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let current = ctx.settings.context_name.as_ref().is_some_and(|current| current.value == name);
    json!({
        "name": name,
        "current": current,
        "url": context.url,
        "project": context.project,
        "stored": (!stored.is_empty()).then(|| stored.join("+")),
        "protected": context.protected,
        "read_only": context.read_only,
    })
}

fn use_context(ctx: &mut Ctx, name: &str) -> Result {
    find_context(ctx, name)?;
    if !ctx.changes_files(&format!("make {name} the current context")) {
        return Ok(());
    }
    ctx.settings.config.current = Some(name.to_owned());
    ctx.settings.config.save(ctx.settings.profile_dir()?)?;
    ctx.out.note(&format!("now using {name}"));
    Ok(())
}

fn show(ctx: &mut Ctx, name: Option<String>) -> Result {
    if let Some(name) = name {
        let context = find_context(ctx, &name)?.clone();
        let credentials = Credentials::load(ctx.settings.profile_dir()?)?;
        let row = row(ctx, &credentials, &name, &context);
        return ctx.out.item(&CONTEXT_VIEW, &row);
    }
    let settings = &ctx.settings;
    let project = settings.project.as_ref();
    let name = settings.context_name.as_ref();
    let lines = [
        ("context", name.map(|name| name.value.clone()), name.map(|name| name.source.clone())),
        ("url", Some(settings.url.value.clone()), Some(settings.url.source.clone())),
        ("project", project.map(|it| it.value.clone()), project.map(|it| it.source.clone())),
        (
            "api key",
            settings.api_key.as_ref().map(|_| "set".to_owned()),
            settings.api_key.as_ref().map(|it| it.source.clone()),
        ),
        (
            "session",
            settings.session.as_ref().map(|_| "set".to_owned()),
            settings.session.as_ref().map(|it| it.source.clone()),
        ),
        ("protected", Some(settings.context.protected.to_string()), None),
        ("read-only", Some(settings.context.read_only.to_string()), None),
    ];
    if ctx.out.format.is_json() {
        let members = lines.map(|(name, value, source)| {
            (name.replace([' ', '-'], "_"), json!({ "value": value, "source": source }))
        });
        return ctx.out.json(&Value::Object(members.into_iter().collect()));
    }
    for (name, value, source) in lines {
        let value = value.unwrap_or_else(|| ctx.out.style.glyphs.none.to_owned());
        let source = source.map(|source| format!("  ({source})")).unwrap_or_default();
        let line = api::text::printable(&format!("{name:<10} {value}{source}")).into_owned();
        ctx.out.write(&(line + "\n"))?;
    }
    Ok(())
}

fn set(ctx: &mut Ctx, args: ContextSetArgs) -> Result {
    if let Some(url) = &ctx.global.url {
        api::client::Client::new(api::client::Options::new(url.clone()))?;
    }
    if !ctx.changes_files(&format!("save the context {}", args.name)) {
        return Ok(());
    }
    let dir = ctx.settings.profile_dir()?.to_owned();
    let config = &mut ctx.settings.config;
    let context = config.contexts.entry(args.name.clone()).or_default();
    if let Some(url) = &ctx.global.url {
        context.url = Some(url.clone());
    }
    if let Some(project) = &ctx.global.project {
        context.project = Some(project.clone());
    }
    context.protected = args.protected.unwrap_or(context.protected);
    context.read_only = args.read_only.unwrap_or(context.read_only);
    config.current.get_or_insert_with(|| args.name.clone());
    config.save(&dir)?;
    ctx.out.note(&format!("saved {}", args.name));
    Ok(())
}

async fn delete(ctx: &mut Ctx, name: &str) -> Result {
    find_context(ctx, name)?;
    let what = format!("This deletes the context {name} and the credentials stored for it on this machine.");
    prompt::confirm(ctx, &what, name).await?;
    if !ctx.changes_files(&format!("delete the context {name}")) {
        return Ok(());
    }
    let dir = ctx.settings.profile_dir()?.to_owned();
    let mut credentials = Credentials::load(&dir)?;
    if credentials.contexts.remove(name).is_some() {
        credentials.save(&dir)?;
    }
    let config = &mut ctx.settings.config;
    config.contexts.remove(name);
    if config.current.as_deref() == Some(name) {
        config.current = None;
    }
    config.save(&dir)?;
    ctx.out.note(&format!("deleted {name}"));
    Ok(())
}

fn find_context<'a>(ctx: &'a Ctx, name: &str) -> Result<&'a Context> {
    let contexts = &ctx.settings.config.contexts;
    contexts.get(name).ok_or_else(|| {
        let names: Vec<_> = contexts.keys().map(String::as_str).collect();
        CliError::new(Exit::NotFound, format!("there is no context `{name}`"))
            .hint(format!("contexts: {}", names.join(", ")))
    })
}
