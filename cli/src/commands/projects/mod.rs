//! `loupe projects`: lists and shows projects, and sets the project of a context. `change.rs` creates and
//! changes projects, `archive.rs` archives them, `redaction.rs` shows and changes their redaction settings.

mod archive;
mod change;
mod redaction;

use api::{
    client::{Client, calls},
    project::ProjectStatus,
};
use clap::{Args, Subcommand, ValueEnum};

use crate::{
    commands::listing::{self, PageArgs},
    ctx::Ctx,
    error::{CliError, Result},
    find,
    output::{Column, View, cell},
};

/// Verbs of `projects`.
#[derive(Debug, Subcommand)]
pub enum ProjectCommand {
    /// List the projects
    #[command(
        before_help = "Examples:\n  loupe projects list\n  loupe projects list --status archived -o id\n"
    )]
    List(ProjectListArgs),
    /// Show one project
    #[command(
        before_help = "Examples:\n  loupe projects get checkout-bot\n  loupe projects get checkout-bot --json --fields id,status\n"
    )]
    Get(ProjectArgs),
    /// Create a project
    #[command(
        before_help = "Examples:\n  loupe projects create checkout-bot --use\n  loupe projects create pilot --retention-days 30 --if-not-exists --json\n"
    )]
    Create(change::ProjectCreateArgs),
    /// Change a project's name or settings
    #[command(
        before_help = "Examples:\n  loupe projects update pilot --name checkout-bot\n  loupe projects update checkout-bot --retention-days none --autoship on\n"
    )]
    Update(change::ProjectUpdateArgs),
    /// Suspend ingest for every key of a project; data is kept
    #[command(
        before_help = "Examples:\n  loupe projects archive 2025-pilot\n  loupe projects archive 2025-pilot --yes --if-active --json\n"
    )]
    Archive(archive::ArchiveArgs),
    /// Resume ingest for an archived project
    #[command(before_help = "Examples:\n  loupe projects unarchive 2025-pilot\n")]
    Unarchive(ProjectArgs),
    /// Show or change the redaction settings of a project: personal data, secrets and patterns to mask in new texts
    #[command(
        before_help = "Examples:\n  loupe projects redaction checkout-bot\n  loupe projects redaction bot --detect all --pattern 'staff=EMP-[0-9]{6}'\n  loupe projects redaction checkout-bot --off\n"
    )]
    Redaction(redaction::RedactionArgs),
    /// Set the project of the current context
    #[command(before_help = "Examples:\n  loupe projects use checkout-bot\n")]
    Use(ProjectArgs),
}

/// Arguments of `projects list`.
#[derive(Debug, Args)]
pub struct ProjectListArgs {
    /// Only projects with this status
    #[arg(long, value_enum, default_value_t = StatusFilter::Active)]
    status: StatusFilter,
}

/// Values of `--status`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum StatusFilter {
    Active,
    Archived,
    All,
}

/// Argument that names a project.
#[derive(Debug, Args)]
pub struct ProjectArgs {
    /// Id, name, or the last characters of the id
    project: String,
}

/// Table of projects.
const PROJECT_VIEW: View = View {
    plural: "projects",
    id: "id",
    columns: &[
        Column::new("NAME", "name", |row, style| cell::text(row, "name", style)).elastic(),
        Column::new("STATUS", "status", |row, style| cell::text(row, "status", style)),
        Column::new("CREATED", "created_at", |row, style| cell::date(row, "created_at", style)),
        Column::new("RETENTION", "retention_days", |row, style| cell::text(row, "retention_days", style))
            .right()
            .optional(),
        Column::new("AUTOSHIP", "prompt_autoship_enabled", |row, style| {
            cell::text(row, "prompt_autoship_enabled", style)
        })
        .wide(),
        Column::new("ARCHIVED", "archived_at", |row, style| cell::date(row, "archived_at", style)).wide(),
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
        "created",
    ],
};

/// Runs a verb of `projects`.
pub async fn run(ctx: &mut Ctx, command: ProjectCommand) -> Result {
    let client = ctx.client()?;
    match command {
        ProjectCommand::List(args) => list(ctx, &client, args.status).await,
        ProjectCommand::Get(args) => {
            ctx.out.check(&PROJECT_VIEW)?;
            let id = project_id(&client, &args.project).await?;
            let project = client.value(&calls::project(id)).await?;
            ctx.out.item(&PROJECT_VIEW, &project)
        }
        ProjectCommand::Create(args) => change::create(ctx, &client, args).await,
        ProjectCommand::Update(args) => change::update(ctx, &client, args).await,
        ProjectCommand::Archive(args) => archive::archive(ctx, &client, &args).await,
        ProjectCommand::Unarchive(args) => archive::unarchive(ctx, &client, &args.project).await,
        ProjectCommand::Redaction(args) => redaction::run(ctx, &client, args).await,
        ProjectCommand::Use(args) => {
            let project = find::project(&client, &args.project).await?;
            use_project(ctx, &project.name)
        }
    }
}

async fn project_id(client: &Client, wanted: &str) -> Result<uuid::Uuid> {
    match wanted.parse() {
        Ok(id) => Ok(id),
        Err(_) => Ok(find::project(client, wanted).await?.id),
    }
}

async fn list(ctx: &mut Ctx, client: &Client, status: StatusFilter) -> Result {
    ctx.out.check(&PROJECT_VIEW)?;
    let status = match status {
        StatusFilter::Active => Some(ProjectStatus::Active),
        StatusFilter::Archived => Some(ProjectStatus::Archived),
        StatusFilter::All => None,
    };
    let empty = "no projects of this status";
    listing::list(ctx, client, &PROJECT_VIEW, PageArgs::whole(), empty, |page| calls::projects(status, page))
        .await
}

/// Stores a project in the current context.
fn use_project(ctx: &mut Ctx, project: &str) -> Result {
    let Some(name) = ctx.settings.context_name.as_ref().map(|name| name.value.clone()) else {
        return Err(CliError::usage("there is no context to store the project in")
            .hint("create one: loupe context set default --url URL"));
    };
    if !ctx.changes_files(&format!("make {project} the project of the context {name}")) {
        return Ok(());
    }
    let dir = ctx.settings.profile_dir()?.to_owned();
    let config = &mut ctx.settings.config;
    config.contexts.entry(name.clone()).or_default().project = Some(project.to_owned());
    config.save(&dir)?;
    ctx.out.note(&format!("{name} now uses {project}"));
    Ok(())
}
