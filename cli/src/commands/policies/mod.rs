//! `loupe policies`: policies of the control loop. Every command requires a session token.

mod change;
mod view;

use api::client::calls;
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::{
    commands::listing::{PageArgs, list},
    ctx::Ctx,
    error::Result,
    find,
};
use view::{POLICY_VIEW, sheet};

/// Verbs of `policies`.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// List policies, newest first
    #[command(
        before_help = "Examples:\n  loupe policies list\n  loupe policies list -o wide\n  loupe policies list --json --jq '.policies[] | select(.enabled) | .name' --raw\n"
    )]
    List(PageArgs),
    /// Show one policy
    #[command(
        before_help = "Examples:\n  loupe policies get 'retry timeouts'\n  loupe policies get 5e1f09aa --json --fields trigger,action_config\n"
    )]
    Get(PolicyArgs),
    /// Create a policy; requires the role owner
    #[command(
        before_help = "Examples:\n  loupe policies create -p shop --name 'retry timeouts' --action retry \\\n    --on-failure timeout,rate_limit --cooldown 10m --daily-budget 5\n  loupe policies create -p shop --action fallback_model --model gpt-4o \\\n    --on-evaluation faithfulness --max-score 0.5 --require-approval\n  loupe policies create -p shop --action prompt_modification \\\n    --system-suffix 'Cite the policy section.'\n",
        after_help = "Without --on-failure and --on-evaluation, a policy gives its limits and its configuration to\nactions that are requested with it.\n"
    )]
    Create(change::PolicyCreateArgs),
    /// Change a policy; requires the role owner
    #[command(
        before_help = "Examples:\n  loupe policies update 'retry timeouts' --disabled\n  loupe policies update 5e1f09aa --daily-budget none --max-retry-depth 2\n  loupe policies update 5e1f09aa --on-failure none\n",
        after_help = "--on-failure none or --on-evaluation none removes the trigger. `none` also removes a part of the\nconfiguration, such as --temperature none.\n"
    )]
    Update(change::PolicyUpdateArgs),
    /// Delete a policy; its actions are kept. Requires the role owner
    #[command(
        before_help = "Examples:\n  loupe policies delete 5e1f09aa\n  loupe policies delete 5e1f09aa --yes\n"
    )]
    Delete(PolicyArgs),
}

/// Argument that names a policy.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// Name, id, or the last characters of the id
    policy: String,
}

/// Runs a verb of `policies`.
pub async fn run(ctx: &mut Ctx, command: PolicyCommand) -> Result {
    ctx.out.check(&POLICY_VIEW)?;
    match command {
        PolicyCommand::List(page) => {
            let client = ctx.session_client("listing policies")?;
            let project = find::current_project(&client, &ctx.settings).await?;
            let empty = "no policies; loupe policies create --help";
            list(ctx, &client, &POLICY_VIEW, page, empty, |page| calls::policies(project, page)).await
        }
        PolicyCommand::Get(args) => {
            let client = ctx.session_client("showing a policy")?;
            let id = find::policy(&client, &ctx.settings, &args.policy).await?;
            let policy = client.value(&calls::policy(id)).await?;
            show(ctx, &policy)
        }
        PolicyCommand::Create(args) => change::create(ctx, args).await,
        PolicyCommand::Update(args) => change::update(ctx, args).await,
        PolicyCommand::Delete(args) => change::delete(ctx, &args.policy).await,
    }
}

/// Shows one policy.
fn show(ctx: &mut Ctx, policy: &Value) -> Result {
    ctx.out.whole(&POLICY_VIEW, policy, sheet)
}
