//! `loupe projects`: what they are, archiving them, choosing one for the context.

use api::{
    client::{
        Client,
        calls::{self, Page},
    },
    project::{Project, ProjectStatus},
};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use crate::{
    ctx::Ctx,
    error::{CliError, Result},
    find,
    output::{Column, Format, View, cell},
    prompt,
};

/// Verbs of `projects`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the projects
    #[command(
        before_help = "Examples:\n  loupe projects list\n  loupe projects list --status archived -o id\n"
    )]
    List(ListArgs),
    /// Show one project
    #[command(
        before_help = "Examples:\n  loupe projects get checkout-bot\n  loupe projects get checkout-bot --json --fields id,status\n"
    )]
    Get(ProjectArgs),
    /// Suspend ingest for every key of a project; data is kept
    #[command(
        before_help = "Examples:\n  loupe projects archive 2025-pilot\n  loupe projects archive 2025-pilot --yes --if-active --json\n"
    )]
    Archive(ArchiveArgs),
    /// Let an archived project take traces again
    #[command(before_help = "Examples:\n  loupe projects unarchive 2025-pilot\n")]
    Unarchive(ProjectArgs),
    /// Make a project the one of the current context
    #[command(before_help = "Examples:\n  loupe projects use checkout-bot\n")]
    Use(ProjectArgs),
}

/// Arguments of `projects list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Those of this status
    #[arg(long, value_enum, default_value_t = Status::Active)]
    status: Status,
}

/// Values of `--status`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Status {
    Active,
    Archived,
    All,
}

/// A project.
#[derive(Debug, Args)]
pub struct ProjectArgs {
    /// Id, name, or the last characters of the id
    project: String,
}

/// Arguments of `projects archive`.
#[derive(Debug, Args)]
pub struct ArchiveArgs {
    /// Id, name, or the last characters of the id
    project: String,
    /// Being archived already is no error
    #[arg(long)]
    if_active: bool,
}

const VIEW: View = View {
    plural: "projects",
    id: "id",
    columns: &[
        Column::new("NAME", "name", |row, style| cell::text(row, "name", style)).elastic(),
        Column::new("STATUS", "status", |row, style| cell::text(row, "status", style)),
        Column::new("CREATED", "created_at", |row, style| cell::date(row, "created_at", style)),
        Column::new("ARCHIVED", "archived_at", |row, style| cell::date(row, "archived_at", style)).wide(),
        Column::new("RETENTION", "retention_days", |row, style| cell::text(row, "retention_days", style))
            .wide(),
        Column::new("ID", "id", |row, style| cell::short_id(row, "id", style)),
    ],
    fields: &[
        "id",
        "name",
        "status",
        "prompt_autoship_enabled",
        "retention_days",
        "archived_at",
        "created_at",
        "updated_at",
    ],
};

/// Runs a verb of `projects`.
pub async fn run(ctx: &mut Ctx, command: Command) -> Result {
    let client = ctx.client()?;
    match command {
        Command::List(args) => list(ctx, &client, args.status).await,
        Command::Get(args) => {
            ctx.out.check(&VIEW)?;
            let id = project_id(&client, &args.project).await?;
            let project = client.value(&calls::project(id)).await?;
            ctx.out.item(&VIEW, &project)
        }
        Command::Archive(args) => archive(ctx, &client, &args).await,
        Command::Unarchive(args) => unarchive(ctx, &client, &args.project).await,
        Command::Use(args) => {
            let project = find::project(&client, &args.project).await?;
            use_project(ctx, project)
        }
    }
}

async fn project_id(client: &Client, wanted: &str) -> Result<uuid::Uuid> {
    match wanted.parse() {
        Ok(id) => Ok(id),
        Err(_) => Ok(find::project(client, wanted).await?.id),
    }
}

async fn list(ctx: &mut Ctx, client: &Client, status: Status) -> Result {
    ctx.out.check(&VIEW)?;
    let status = match status {
        Status::Active => Some(ProjectStatus::Active),
        Status::Archived => Some(ProjectStatus::Archived),
        Status::All => None,
    };
    let page = |cursor| calls::projects(status, &Page { limit: Some(200), cursor });
    let projects = super::all_pages(ctx, client, VIEW.plural, page).await?;
    ctx.out.list(&VIEW, projects)
}

async fn archive(ctx: &mut Ctx, client: &Client, args: &ArchiveArgs) -> Result {
    // Without a terminal the question can't be asked, whatever the project turns out to be.
    let asked = !ctx.global.yes && !ctx.global.dry_run;
    if asked {
        prompt::require_terminal(ctx, "--yes")?;
    }
    if ctx.global.dry_run
        && let Ok(id) = args.project.parse()
    {
        return ctx.show_call(&calls::archive_project(id));
    }
    let project = find::project(client, &args.project).await?;
    if project.status == ProjectStatus::Archived {
        if !args.if_active {
            ctx.out.note(&format!("{} is archived already", project.name));
        }
        return changed(ctx, &project, "archived", false);
    }
    if asked {
        let what = format!(
            "This suspends ingest for every key of {} at once. SDKs that are\nrunning will disable their exporter until restarted. Data is kept.",
            project.name
        );
        prompt::confirm(ctx, &what, Some(&project.name)).await?;
    }
    match ctx.write(client, &calls::archive_project(project.id)).await? {
        None => Ok(()),
        Some(_) => changed(ctx, &project, "archived", true),
    }
}

async fn unarchive(ctx: &mut Ctx, client: &Client, wanted: &str) -> Result {
    if ctx.global.dry_run
        && let Ok(id) = wanted.parse()
    {
        return ctx.show_call(&calls::unarchive_project(id));
    }
    let project = find::project(client, wanted).await?;
    if project.status == ProjectStatus::Active {
        return changed(ctx, &project, "active", false);
    }
    match ctx.write(client, &calls::unarchive_project(project.id)).await? {
        None => Ok(()),
        Some(_) => changed(ctx, &project, "active", true),
    }
}

fn changed(ctx: &mut Ctx, project: &Project, status: &str, changed: bool) -> Result {
    match ctx.out.format {
        Format::Json | Format::Ndjson => {
            ctx.out.json(&json!({ "project": project.name, "status": status, "changed": changed }))
        }
        Format::Id => ctx.out.write(&format!("{}\n", project.id)),
        _ => {
            let verb = if changed { "is now" } else { "was already" };
            ctx.out.note(&format!("{} {verb} {status}", project.name));
            Ok(())
        }
    }
}

fn use_project(ctx: &mut Ctx, project: Project) -> Result {
    let Some(name) = ctx.settings.context_name.as_ref().map(|name| name.value.clone()) else {
        return Err(CliError::usage("there is no context to keep the project in")
            .hint("make one: loupe context set default --url URL"));
    };
    let dir = ctx.settings.profile_dir()?.to_owned();
    let config = &mut ctx.settings.config;
    config.contexts.entry(name.clone()).or_default().project = Some(project.name.clone());
    config.save(&dir)?;
    ctx.out.note(&format!("{name} now uses {}", project.name));
    Ok(())
}
