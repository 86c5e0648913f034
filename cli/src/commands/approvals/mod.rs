//! `loupe approvals`: prompt deployments and control actions that wait for an owner. Every command requires a session
//! token.

mod queue;
mod view;
mod watch;

use api::page::DEFAULT_LIMIT;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::{args::positive, ctx::Ctx, error::Result, find, format::Format};
use queue::ApprovalQueue;
use view::APPROVAL_VIEW;

/// Verbs of `approvals`.
#[derive(Debug, Subcommand)]
pub enum ApprovalCommand {
    /// List everything that waits for approval, newest first
    #[command(
        before_help = "Examples:\n  loupe approvals list\n  loupe approvals list -p shop -o ndjson --fields kind,id,reason\n  loupe approvals list --json --jq '.deployments[].id' --raw\n",
        after_help = "--json prints the deployments and the actions as the API sends them, in two arrays.\n"
    )]
    List(ApprovalListArgs),
    /// Print what waits for approval, and then each new approval as it appears
    #[command(
        before_help = "Examples:\n  loupe approvals watch\n  loupe approvals watch --new-only -o ndjson\n  loupe approvals watch --exit-on match --for 30m\n"
    )]
    Watch(watch::WatchArgs),
}

/// Arguments of `approvals list`.
#[derive(Debug, Args)]
pub struct ApprovalListArgs {
    /// Number of deployments, and of actions
    #[arg(short = 'L', long, value_name = "N", default_value_t = DEFAULT_LIMIT, value_parser = positive::<u32>)]
    limit: u32,
    /// Show all
    #[arg(long)]
    all: bool,
}

impl ApprovalCommand {
    /// Returns whether the command runs until it is stopped.
    pub fn runs_on(&self) -> bool {
        matches!(self, Self::Watch(_))
    }
}

/// Runs a verb of `approvals`.
pub async fn run(ctx: &mut Ctx, command: ApprovalCommand) -> Result {
    ctx.out.check(&APPROVAL_VIEW)?;
    match command {
        ApprovalCommand::List(args) => list(ctx, &args).await,
        ApprovalCommand::Watch(args) => watch::run(ctx, args).await,
    }
}

async fn list(ctx: &mut Ctx, args: &ApprovalListArgs) -> Result {
    let client = ctx.session_client("listing approvals")?;
    let project = find::current_project(&client, &ctx.settings).await?;
    let limit = if args.all { usize::MAX } else { args.limit as usize };
    let queue = ApprovalQueue::read(&client, project, limit).await?;
    let (rows, has_more) = (queue.rows(), queue.has_more);
    let is_empty = rows.is_empty();
    if ctx.out.format == Format::Json && ctx.global.fields.is_empty() {
        let ApprovalQueue { deployments, actions, has_more } = queue;
        ctx.out.json(&json!({ "deployments": deployments, "actions": actions, "has_more": has_more }))?;
    } else {
        ctx.out.list(&APPROVAL_VIEW, json!({ "approvals": rows, "has_more": has_more }))?;
    }
    if is_empty {
        ctx.out.note("nothing waits for approval");
    } else if has_more {
        ctx.out.note("more on the server (--all)");
    }
    Ok(())
}

/// Returns the id of a row.
fn id(row: &Value) -> &str {
    row.get("id").and_then(Value::as_str).unwrap_or_default()
}
