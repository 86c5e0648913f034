//! `loupe projects archive` and `unarchive`: suspend and resume ingest.

use api::{
    client::{Client, calls},
    project::{Project, ProjectStatus},
};
use clap::Args;
use serde_json::json;

use crate::{commands::report, ctx::Ctx, error::Result, find, prompt};

/// Arguments of `projects archive`.
#[derive(Debug, Args)]
pub struct ArchiveArgs {
    /// Id, name, or the last characters of the id
    project: String,
    /// Succeed if the project is already archived
    #[arg(long)]
    if_active: bool,
}

/// Suspends ingest for every key of a project.
pub async fn archive(ctx: &mut Ctx, client: &Client, args: &ArchiveArgs) -> Result {
    // Checked before the first request: without a terminal, the confirmation is impossible in any case.
    prompt::require_answer(ctx)?;
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
    let what = format!(
        "This suspends ingest for every key of {} at once. SDKs that are\nrunning will disable their exporter until restarted. Data is kept.",
        project.name
    );
    prompt::confirm_by_word(ctx, &what, &project.name).await?;
    match ctx.write(client, &calls::archive_project(project.id)).await? {
        None => Ok(()),
        Some(_) => changed(ctx, &project, "archived", true),
    }
}

/// Resumes ingest for a project.
pub async fn unarchive(ctx: &mut Ctx, client: &Client, wanted: &str) -> Result {
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
    let verb = if changed { "is now" } else { "was already" };
    let sentence = format!("{} {verb} {status}", project.name);
    let document = json!({ "project": project.name, "status": status, "changed": changed });
    report(ctx, &sentence, &project.id.to_string(), document)
}
