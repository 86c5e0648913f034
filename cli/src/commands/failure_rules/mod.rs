//! `loupe failure-rules`: failure rules, which trigger webhooks and policies.

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
use view::{FAILURE_RULE_VIEW, sheet};

/// Verbs of `failure-rules`.
#[derive(Debug, Subcommand)]
pub enum FailureRuleCommand {
    /// Create a rule: failure types or low scores, and a filter of traces
    #[command(
        before_help = "Examples:\n  loupe failure-rules create 'timeouts' -p checkout-bot --type timeout\n  loupe failure-rules create 'many rate limits' --type rate_limit \\\n    --min-count 20 --window 15m\n  loupe failure-rules create 'invented facts' --metric faithfulness \\\n    --max-score 0.5\n  loupe failure-rules create 'production' --all-projects \\\n    --filter-tag env:prod --disabled\n",
        after_help = "Without --type and --metric, the rule fires for timeout, rate_limit, invalid_response and\ncontext_length. --project selects the project; without it, the rule is for all projects.\n"
    )]
    Create(change::FailureRuleCreateArgs),
    /// List the rules, newest first
    #[command(
        before_help = "Examples:\n  loupe failure-rules list\n  loupe failure-rules list -p checkout-bot -o wide\n  loupe failure-rules list --json \\\n    --jq '.failure_rules[] | select(.enabled | not)'\n"
    )]
    List,
    /// Show one rule
    #[command(
        before_help = "Examples:\n  loupe failure-rules get timeouts\n  loupe failure-rules get 5e1f09aa --json --fields failure_types,filter\n"
    )]
    Get(FailureRuleArgs),
    /// Change the given fields of a rule
    #[command(
        before_help = "Examples:\n  loupe failure-rules update timeouts --min-count 5 --window 1h\n  loupe failure-rules update 5e1f09aa --type timeout,other --metric none\n  loupe failure-rules update 5e1f09aa --filter-tag env:prod --filter-model none\n  loupe failure-rules update 5e1f09aa --all-projects --no-filter\n",
        after_help = "--type replaces all failure types. `none` for --filter-model, --filter-tag, --filter-name or\n--span-type drops that part of the filter; with --no-filter, which clears the filter first, `none`\nis an ordinary value.\n"
    )]
    Update(change::FailureRuleUpdateArgs),
    /// Enable a rule
    #[command(before_help = "Examples:\n  loupe failure-rules enable timeouts\n")]
    Enable(FailureRuleArgs),
    /// Disable a rule
    #[command(before_help = "Examples:\n  loupe failure-rules disable timeouts\n")]
    Disable(FailureRuleArgs),
    /// Delete a rule; requires the role owner
    #[command(
        before_help = "Examples:\n  loupe failure-rules delete timeouts\n  loupe failure-rules delete 5e1f09aa --yes\n"
    )]
    Delete(FailureRuleArgs),
}

/// Argument that names a failure rule.
#[derive(Debug, Args)]
pub struct FailureRuleArgs {
    /// Name, id, or the last characters of the id
    rule: String,
}

/// Runs a verb of `failure-rules`.
pub async fn run(ctx: &mut Ctx, command: FailureRuleCommand) -> Result {
    ctx.out.check(&FAILURE_RULE_VIEW)?;
    let client = ctx.client()?;
    match command {
        FailureRuleCommand::Create(args) => change::create(ctx, &client, args).await,
        FailureRuleCommand::List => {
            let project = find::current_project(&client, &ctx.settings).await?;
            let empty = "no failure rules; loupe failure-rules create --help";
            list(ctx, &client, &FAILURE_RULE_VIEW, PageArgs::whole(), empty, |page| {
                calls::failure_rules(project, page)
            })
            .await
        }
        FailureRuleCommand::Get(args) => {
            let id = find::failure_rule(&client, &ctx.settings, &args.rule).await?;
            let rule = client.value(&calls::failure_rule(id)).await?;
            show(ctx, &rule)
        }
        FailureRuleCommand::Update(args) => change::update(ctx, &client, args).await,
        FailureRuleCommand::Enable(args) => change::switch(ctx, &client, &args.rule, true).await,
        FailureRuleCommand::Disable(args) => change::switch(ctx, &client, &args.rule, false).await,
        FailureRuleCommand::Delete(args) => change::delete(ctx, &client, &args.rule).await,
    }
}

/// Shows a failure rule: in full on a terminal, otherwise as a row.
fn show(ctx: &mut Ctx, rule: &Value) -> Result {
    ctx.out.whole(&FAILURE_RULE_VIEW, rule, sheet)
}
