//! `loupe actions`: control actions on traces. Every command requires a session token.

mod decide;
mod diff;
mod diff_view;
mod request;
pub mod view;

use api::{
    client::{Client, calls},
    control::{ActionFilter, ActionStatus, ActionType},
};
use clap::{Args, Subcommand};
use uuid::Uuid;

use crate::{
    commands::{
        listing::{PageArgs, list},
        period::PeriodArgs,
    },
    ctx::Ctx,
    error::Result,
    find::{self, RecordKind},
};
use view::{ACTION_VIEW, sheet};

const ACTION_KIND: RecordKind =
    RecordKind { article: "a", name: "control action", plural: "actions", list: "loupe actions list" };

/// Verbs of `actions`.
#[derive(Debug, Subcommand)]
pub enum ActionCommand {
    /// List control actions, newest first
    #[command(
        before_help = "Examples:\n  loupe actions list --status pending_approval\n  loupe actions list --trace c07b44d1\n  loupe actions list --type escalate --from -24h -o wide\n"
    )]
    List(ActionListArgs),
    /// Show one control action
    #[command(
        before_help = "Examples:\n  loupe actions get 5e1f09aa\n  loupe actions get 5e1f09aa --json --fields status,error,metadata\n"
    )]
    Get(ActionArgs),
    /// Request a control action on a trace
    #[command(
        before_help = "Examples:\n  loupe actions request c07b44d1 --type retry --wait\n  loupe actions request c07b44d1 --type fallback_model --model gpt-4o\n  loupe actions request c07b44d1 --type prompt_modification \\\n    --system-suffix 'Cite the policy section.' --temperature 0\n",
        after_help = "The provider is called with your tenant's key. An action that exceeds the limits of its policy\nbecomes an escalation, which waits for approval. With --wait, the exit code is 6 if the action\nfailed or was rejected, and 7 if it did not end in time.\n"
    )]
    Request(request::RequestArgs),
    /// Compare the output of a control action with the original one
    #[command(
        before_help = "Examples:\n  loupe actions diff 5e1f09aa\n  loupe actions diff 5e1f09aa --wait --for 5m --exit-code\n  loupe actions diff 5e1f09aa --stat\n  loupe actions diff 5e1f09aa --json --jq '.eval_deltas[] | select(.regressed)'\n",
        after_help = "Until all evaluations of the output have ended, the exit code is 7 and stderr names their\nnumber; --json prints it, too.\n"
    )]
    Diff(diff::DiffArgs),
    /// Approve a control action that waits; requires the role owner
    #[command(
        before_help = "Examples:\n  loupe actions approve 5e1f09aa\n  loupe actions approve 5e1f09aa --yes --json\n"
    )]
    Approve(ActionArgs),
    /// Reject a control action that waits; requires the role owner
    #[command(
        before_help = "Examples:\n  loupe actions reject 5e1f09aa\n  loupe actions reject 5e1f09aa --yes\n"
    )]
    Reject(ActionArgs),
}

impl ActionCommand {
    /// Returns whether the command waits for a result.
    pub fn waits(&self) -> bool {
        match self {
            Self::Request(args) => args.waits(),
            Self::Diff(args) => args.waits(),
            _ => false,
        }
    }
}

/// Arguments of `actions list`.
#[derive(Debug, Args)]
pub struct ActionListArgs {
    /// Only with this status: pending_approval, queued, running, succeeded, failed or rejected
    #[arg(long)]
    status: Option<ActionStatus>,
    /// Only of this type: retry, fallback_model, prompt_modification or escalate
    #[arg(long = "type", value_name = "TYPE")]
    action_type: Option<ActionType>,
    /// Only on this trace: id, the last characters of a recent id, or an OpenTelemetry trace id
    #[arg(long, value_name = "ID")]
    trace: Option<String>,
    /// Only of this policy: name, id, or the last characters of the id
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    #[command(flatten)]
    period: PeriodArgs,
    #[command(flatten)]
    page: PageArgs,
}

/// Argument that names a control action.
#[derive(Debug, Args)]
pub struct ActionArgs {
    /// Id, or the last characters of it
    action: String,
}

/// Runs a verb of `actions`.
pub async fn run(ctx: &mut Ctx, command: ActionCommand) -> Result {
    match command {
        ActionCommand::List(args) => list_actions(ctx, args).await,
        ActionCommand::Get(args) => {
            ctx.out.check(&ACTION_VIEW)?;
            let client = ctx.session_client("showing a control action")?;
            let id = action_id(ctx, &client, &args.action).await?;
            let action = client.value(&calls::control_action(id)).await?;
            ctx.out.whole(&ACTION_VIEW, &action, sheet)
        }
        ActionCommand::Request(args) => request::run(ctx, args).await,
        ActionCommand::Diff(args) => diff::run(ctx, args).await,
        ActionCommand::Approve(args) => decide::run(ctx, &args.action, true).await,
        ActionCommand::Reject(args) => decide::run(ctx, &args.action, false).await,
    }
}

async fn list_actions(ctx: &mut Ctx, args: ActionListArgs) -> Result {
    ctx.out.check(&ACTION_VIEW)?;
    let client = ctx.session_client("listing control actions")?;
    let (from, to) = args.period.resolve()?;
    let project_id = find::current_project(&client, &ctx.settings).await?;
    let trace_id = match &args.trace {
        Some(wanted) => Some(find::trace(&client, &ctx.settings, wanted).await?),
        None => None,
    };
    let policy_id = match &args.policy {
        Some(wanted) => Some(find::policy(&client, &ctx.settings, wanted).await?),
        None => None,
    };
    let ActionListArgs { status, action_type, page, .. } = args;
    let filter = ActionFilter { project_id, trace_id, policy_id, action_type, status, from, to };
    list(ctx, &client, &ACTION_VIEW, page, "no control actions", |page| calls::control_actions(&filter, page))
        .await
}

/// Finds a control action by id, or a recent one by the end of its id.
pub async fn action_id(ctx: &Ctx, client: &Client, wanted: &str) -> Result<Uuid> {
    find::record(client, &ctx.settings, ACTION_KIND, wanted, |project_id, page| {
        calls::control_actions(&ActionFilter { project_id, ..ActionFilter::default() }, page)
    })
    .await
}
