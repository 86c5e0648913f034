//! `loupe deployments`: versions of prompts that are tested, shipped and rolled back. Every command requires a session
//! token.

mod create;
mod decide;
pub mod view;

use api::{
    client::{Client, calls},
    deployment::{DeploymentFilter, DeploymentStatus},
};
use clap::{Args, Subcommand};
use uuid::Uuid;

use crate::{
    commands::listing::{PageArgs, list},
    ctx::Ctx,
    error::Result,
    find::{self, RecordKind},
};
use decide::Decision;
use view::{DEPLOYMENT_VIEW, sheet};

const DEPLOYMENT_KIND: RecordKind = RecordKind {
    article: "a",
    name: "prompt deployment",
    plural: "deployments",
    list: "loupe deployments list",
};

/// Verbs of `deployments`.
#[derive(Debug, Subcommand)]
pub enum DeploymentCommand {
    /// List prompt deployments, newest first
    #[command(
        before_help = "Examples:\n  loupe deployments list --status ab_passed\n  loupe deployments list --prompt support-tone -o wide\n"
    )]
    List(DeploymentListArgs),
    /// Show one prompt deployment with its test and its template
    #[command(
        before_help = "Examples:\n  loupe deployments get 5e1f09aa\n  loupe deployments get 5e1f09aa --json --jq .template --raw\n"
    )]
    Get(DeploymentArgs),
    /// Create a version of a prompt; it is tested against the shipped one
    #[command(
        before_help = "Examples:\n  loupe deployments create -p shop --prompt support-tone \\\n    --template tone.txt --metric faithfulness\n  loupe deployments create -p shop --prompt support-tone \\\n    --from-action 5e1f09aa --metric faithfulness --replay --min-samples 50\n",
        after_help = "The first version of a prompt needs no --metric: there is no version to compare with, so it waits\nfor approval at once.\n"
    )]
    Create(create::DeploymentCreateArgs),
    /// Ship a version that passed its test; requires the role owner
    #[command(
        before_help = "Examples:\n  loupe deployments approve 5e1f09aa\n  loupe deployments approve 5e1f09aa --yes --note 'reviewed in MR 12'\n"
    )]
    Approve(DecisionArgs),
    /// Reject a version; a shipped one is replaced by the version before it. Requires the role owner
    #[command(
        before_help = "Examples:\n  loupe deployments reject 5e1f09aa\n  loupe deployments reject 5e1f09aa --yes --note 'too curt'\n"
    )]
    Reject(DecisionArgs),
    /// Roll a shipped version back to the one before it; requires the role owner
    #[command(
        before_help = "Examples:\n  loupe deployments rollback 5e1f09aa\n  loupe deployments rollback 5e1f09aa --yes --note incident-42\n"
    )]
    Rollback(DecisionArgs),
}

/// Arguments of `deployments list`.
#[derive(Debug, Args)]
pub struct DeploymentListArgs {
    /// Only with this status: ab_running, ab_passed, ab_failed, shipped, regressed, rejected,
    /// rolled_back or superseded
    #[arg(long)]
    status: Option<DeploymentStatus>,
    /// Only of this prompt
    #[arg(long, value_name = "NAME")]
    prompt: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

/// Argument that names a prompt deployment.
#[derive(Debug, Args)]
pub struct DeploymentArgs {
    /// Id, or the last characters of it
    deployment: String,
}

/// Arguments of a decision about a prompt deployment.
#[derive(Debug, Args)]
pub struct DecisionArgs {
    /// Id, or the last characters of it
    deployment: String,
    /// Why, at most 2,000 characters
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

/// Runs a verb of `deployments`.
pub async fn run(ctx: &mut Ctx, command: DeploymentCommand) -> Result {
    ctx.out.check(&DEPLOYMENT_VIEW)?;
    match command {
        DeploymentCommand::List(args) => {
            let client = ctx.session_client("listing prompt deployments")?;
            let project_id = find::current_project(&client, &ctx.settings).await?;
            let filter = DeploymentFilter { project_id, prompt_name: args.prompt, status: args.status };
            list(ctx, &client, &DEPLOYMENT_VIEW, args.page, "no prompt deployments", |page| {
                calls::deployments(&filter, page)
            })
            .await
        }
        DeploymentCommand::Get(args) => {
            let client = ctx.session_client("showing a prompt deployment")?;
            let id = deployment_id(ctx, &client, &args.deployment).await?;
            let deployment = client.value(&calls::deployment(id)).await?;
            ctx.out.whole(&DEPLOYMENT_VIEW, &deployment, sheet)
        }
        DeploymentCommand::Create(args) => create::run(ctx, args).await,
        DeploymentCommand::Approve(args) => decide::run(ctx, args, Decision::Approve).await,
        DeploymentCommand::Reject(args) => decide::run(ctx, args, Decision::Reject).await,
        DeploymentCommand::Rollback(args) => decide::run(ctx, args, Decision::RollBack).await,
    }
}

/// Finds a prompt deployment by id, or a recent one by the end of its id.
async fn deployment_id(ctx: &Ctx, client: &Client, wanted: &str) -> Result<Uuid> {
    find::record(client, &ctx.settings, DEPLOYMENT_KIND, wanted, |project_id, page| {
        calls::deployments(&DeploymentFilter { project_id, ..DeploymentFilter::default() }, page)
    })
    .await
}
