//! `loupe projects create` and `update`: create and change projects.

use api::{
    client::{Client, calls},
    project::{NewProject, Project, ProjectChange},
};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::{PROJECT_VIEW, project_id, use_project};
use crate::{
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
    find,
};

/// Settings of a project, as flags.
#[derive(Debug, Args)]
pub struct ProjectSettingArgs {
    /// Delete traces after this many days; `none` keeps them forever
    #[arg(long, value_name = "N|none", value_parser = days)]
    retention_days: Option<RetentionDays>,
    /// Whether prompt deployments that passed their test ship without approval
    #[arg(long, value_enum, value_name = "on|off")]
    autoship: Option<AutoshipSwitch>,
}

/// Arguments of `projects create`.
#[derive(Debug, Args)]
pub struct ProjectCreateArgs {
    /// Name, unique among the projects
    name: String,
    #[command(flatten)]
    settings: ProjectSettingArgs,
    /// Succeed without changes if a project of this name exists
    #[arg(long)]
    if_not_exists: bool,
    /// Make it the project of the current context
    #[arg(long = "use")]
    use_it: bool,
}

/// Arguments of `projects update`.
#[derive(Debug, Args)]
pub struct ProjectUpdateArgs {
    /// Id, name, or the last characters of the id
    project: String,
    /// New name
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    settings: ProjectSettingArgs,
}

/// Retention in days; `None` keeps traces forever.
#[derive(Clone, Copy, Debug)]
struct RetentionDays(Option<i64>);

fn days(text: &str) -> std::result::Result<RetentionDays, String> {
    if text == "none" {
        return Ok(RetentionDays(None));
    }
    match text.parse() {
        Ok(days @ 1..) => Ok(RetentionDays(Some(days))),
        _ => Err("a number of days, or none".to_owned()),
    }
}

/// Values of `--autoship`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AutoshipSwitch {
    On,
    Off,
}

/// Creates a project.
pub async fn create(ctx: &mut Ctx, client: &Client, args: ProjectCreateArgs) -> Result {
    ctx.out.check(&PROJECT_VIEW)?;
    let settings = &args.settings;
    let new = NewProject {
        name: args.name.clone(),
        prompt_autoship_enabled: settings.autoship.map(|it| it == AutoshipSwitch::On),
        retention_days: settings.retention_days.and_then(|RetentionDays(days)| days),
    };
    let may_exist = args.if_not_exists && !ctx.global.dry_run;
    let old = if may_exist { existing(client, &args.name).await? } else { None };
    let mut project = match &old {
        Some(project) => {
            ctx.out.note(&format!("a project named {} exists", args.name));
            json!(project)
        }
        None => match ctx.write(client, &calls::create_project(&new)).await {
            Ok(Some(project)) => project,
            Ok(None) => return Ok(()),
            Err(error) if error.exit == Exit::Conflict => {
                return Err(error.hint("keep it: --if-not-exists; change it: loupe projects update"));
            }
            Err(error) => return Err(error),
        },
    };
    if old.is_none() {
        ctx.out.note(&format!("{} Created project {}", ctx.out.style.glyphs.ok, args.name));
    }
    if args.use_it {
        use_project(ctx, &args.name)?;
    }
    project["created"] = json!(old.is_none());
    ctx.out.item(&PROJECT_VIEW, &project)
}

async fn existing(client: &Client, name: &str) -> Result<Option<Project>> {
    match find::project(client, name).await {
        Ok(project) => Ok(Some(project).filter(|project| project.name == name)),
        Err(error) if error.exit == Exit::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Changes the given fields of a project.
pub async fn update(ctx: &mut Ctx, client: &Client, args: ProjectUpdateArgs) -> Result {
    ctx.out.check(&PROJECT_VIEW)?;
    let change = ProjectChange {
        name: args.name,
        prompt_autoship_enabled: args.settings.autoship.map(|it| it == AutoshipSwitch::On),
        retention_days: args.settings.retention_days.map(|RetentionDays(days)| days),
    };
    let ProjectChange { name, prompt_autoship_enabled, retention_days } = &change;
    if name.is_none() && prompt_autoship_enabled.is_none() && retention_days.is_none() {
        return Err(CliError::usage("nothing to change")
            .hint("give --name, --retention-days N|none or --autoship on|off"));
    }
    let id = project_id(client, &args.project).await?;
    let Some(project) = ctx.write(client, &calls::change_project(id, &change)).await? else {
        return Ok(());
    };
    ctx.out.note(&format!("{} Changed project {}", ctx.out.style.glyphs.ok, args.project));
    if let Some(name) = change.name.as_deref()
        && ctx.settings.context.project.as_deref() == Some(&args.project)
    {
        // The context still contains the old name.
        use_project(ctx, name)?;
    }
    ctx.out.item(&PROJECT_VIEW, &project)
}
