//! `loupe rules`: eval rules, which run an evaluator on each new trace that matches a filter.

mod change;
mod view;

use std::time::Duration;

use api::{
    client::{Client, JUDGE_TIMEOUT, Retry, calls},
    eval_rule::{NewBackfill, NewRuleTest},
};
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::{
    commands::{
        evals::{
            WAIT_EXIT_CODES,
            bulk::{self, follow},
            view::text_member,
            wait::{WaitArgs, combine_results},
        },
        listing::{PageArgs, list},
        period::PeriodArgs,
    },
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
    find, prompt,
};
use view::{DECISION_VIEW, RULE_TEST_VIEW, RULE_VIEW};

/// Verbs of `rules`.
#[derive(Debug, Subcommand)]
pub enum RuleCommand {
    /// Create a rule: an evaluator and a filter of traces
    #[command(
        before_help = "Examples:\n  loupe rules create -p checkout-bot --metric toxicity --type llm \\\n    --sample-rate 10%\n  loupe rules create -p checkout-bot --metric latency_threshold --type rule \\\n    --config '{\"max_latency_ms\": 2000}'\n  loupe rules create -p checkout-bot --metric json_schema_conformance \\\n    --type rule --config config.json --filter-name plan_trip --span-type llm\n  loupe rules create -p checkout-bot --metric faithfulness --type llm \\\n    --tier premium --min-score-drop 0.05 --disabled\n"
    )]
    Create(change::RuleCreateArgs),
    /// List the rules, newest first
    #[command(
        before_help = "Examples:\n  loupe rules list\n  loupe rules list -p checkout-bot -o wide\n  loupe rules list --json --jq '.eval_rules[] | select(.paused_reason)'\n"
    )]
    List,
    /// Show one rule
    #[command(
        before_help = "Examples:\n  loupe rules get toxicity\n  loupe rules get 5e1f09aa --json --fields config,filter\n"
    )]
    Get(RuleArgs),
    /// Change the given fields of a rule
    #[command(
        before_help = "Examples:\n  loupe rules update toxicity --sample-rate 50%\n  loupe rules update 5e1f09aa --config config.json --min-score-drop none\n  loupe rules update 5e1f09aa --filter-tag env:prod --filter-model none\n  loupe rules update 5e1f09aa --no-filter\n",
        after_help = "--config replaces all options; options that it does not contain get their defaults. `none` for\n--filter-model, --filter-tag, --filter-name or --span-type drops that part of the filter; with\n--no-filter, which clears the filter first, `none` is an ordinary value.\n"
    )]
    Update(change::RuleUpdateArgs),
    /// Enable a rule; a paused rule is retried
    #[command(before_help = "Examples:\n  loupe rules enable toxicity\n")]
    Enable(RuleArgs),
    /// Disable a rule
    #[command(before_help = "Examples:\n  loupe rules disable toxicity\n")]
    Disable(RuleArgs),
    /// Delete a rule
    #[command(
        before_help = "Examples:\n  loupe rules delete toxicity\n  loupe rules delete 5e1f09aa --yes\n"
    )]
    Delete(RuleArgs),
    /// Test a rule on a trace without storing the result
    #[command(
        before_help = "Examples:\n  loupe rules test toxicity c07b44d1\n  loupe rules test 5e1f09aa c07b44d1 --json --fields decision,score,error\n",
        after_help = "Exit code 16: the evaluator failed. The score does not affect the exit code. Because a judge may\nbe slow, the default timeout is 3 minutes, and the request is not retried.\n"
    )]
    Test(RuleTestArgs),
    /// Run a rule on past traces
    #[command(
        before_help = "Examples:\n  loupe rules backfill toxicity --from -7d --wait\n  loupe rules backfill 5e1f09aa --from 2026-11-01 --to 2026-11-08\n",
        after_help = format!("{WAIT_EXIT_CODES}Without --from and --to, the command asks for confirmation.\n")
    )]
    Backfill(BackfillArgs),
    /// Show the decisions of a rule on traces, with reasons
    #[command(
        before_help = "Examples:\n  loupe rules decisions toxicity\n  loupe rules decisions toxicity --trace c07b44d1\n  loupe rules decisions 5e1f09aa --all -o csv > decisions.csv\n"
    )]
    Decisions(DecisionsArgs),
}

impl RuleCommand {
    /// Returns whether the command waits for evaluations, with `--for` as its limit.
    pub fn waits(&self) -> bool {
        matches!(self, Self::Backfill(args) if args.wait.is_given())
    }
}

/// Argument that names an eval rule.
#[derive(Debug, Args)]
pub struct RuleArgs {
    /// Id, its last characters, or the metric if only one rule has it
    rule: String,
}

/// Arguments of `rules test`.
#[derive(Debug, Args)]
pub struct RuleTestArgs {
    /// Id, its last characters, or the metric if only one rule has it
    rule: String,
    /// Id, the last characters of a recent id, or an OpenTelemetry trace id
    trace: String,
}

/// Arguments of `rules backfill`.
#[derive(Debug, Args)]
pub struct BackfillArgs {
    /// Id, its last characters, or the metric if only one rule has it
    rule: String,
    #[command(flatten)]
    period: PeriodArgs,
    #[command(flatten)]
    wait: WaitArgs,
}

/// Arguments of `rules decisions`.
#[derive(Debug, Args)]
pub struct DecisionsArgs {
    /// Id, its last characters, or the metric if only one rule has it
    rule: String,
    /// Only on this trace: id, the last characters of a recent id, or an OpenTelemetry trace id
    #[arg(long, value_name = "ID")]
    trace: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

/// Runs a verb of `rules`.
pub async fn run(ctx: &mut Ctx, command: RuleCommand) -> Result {
    let client = ctx.client()?;
    match command {
        RuleCommand::Create(args) => change::create(ctx, &client, args).await,
        RuleCommand::List => {
            ctx.out.check(&RULE_VIEW)?;
            let project = find::current_project(&client, &ctx.settings).await?;
            let empty = "no rules; loupe rules create --help";
            list(ctx, &client, &RULE_VIEW, PageArgs::whole(), empty, |page| calls::eval_rules(project, page))
                .await
        }
        RuleCommand::Get(args) => {
            ctx.out.check(&RULE_VIEW)?;
            let id = find::eval_rule(&client, &ctx.settings, &args.rule).await?;
            let rule = client.value(&calls::eval_rule(id)).await?;
            show(ctx, &rule)
        }
        RuleCommand::Update(args) => change::update(ctx, &client, args).await,
        RuleCommand::Enable(args) => change::switch(ctx, &client, &args.rule, true).await,
        RuleCommand::Disable(args) => change::switch(ctx, &client, &args.rule, false).await,
        RuleCommand::Delete(args) => change::delete(ctx, &client, &args.rule).await,
        RuleCommand::Test(args) => test(ctx, &client, &args).await,
        RuleCommand::Backfill(args) => backfill(ctx, &client, &args).await,
        RuleCommand::Decisions(args) => decisions(ctx, &client, args).await,
    }
}

/// Shows an eval rule: in full on a terminal, otherwise as a row.
fn show(ctx: &mut Ctx, rule: &Value) -> Result {
    ctx.out.whole(&RULE_VIEW, rule, view::sheet)
}

async fn test(ctx: &mut Ctx, client: &Client, args: &RuleTestArgs) -> Result {
    ctx.out.check(&RULE_TEST_VIEW)?;
    let id = find::eval_rule(client, &ctx.settings, &args.rule).await?;
    let trace_id = find::trace(client, &ctx.settings, &args.trace).await?;
    let timeout = ctx.settings.timeout.as_ref().map(|limit| limit.value);
    let call = calls::test_eval_rule(id, &NewRuleTest { trace_id });
    let Some(result) = ctx.write(&judge_client(client, timeout), &call).await? else {
        return Ok(());
    };
    let written = ctx.out.whole(&RULE_TEST_VIEW, &result, view::test_sheet);
    let judged = match text_member(&result, "error") {
        "" => Ok(()),
        why => Err(CliError::new(Exit::EvaluationFailed, format!("no score: {why}"))),
    };
    combine_results(written, judged)
}

/// Returns a client for requests that wait for a judge. It does not retry, because every judge call costs
/// money.
fn judge_client(client: &Client, timeout: Option<Duration>) -> Client {
    client.with_timeout(timeout.unwrap_or(JUDGE_TIMEOUT)).with_retry(Retry::NEVER)
}

async fn backfill(ctx: &mut Ctx, client: &Client, args: &BackfillArgs) -> Result {
    let (from, to) = args.period.resolve()?;
    let until = args.wait.until()?;
    bulk::check(ctx, until)?;
    let is_unbounded = from.is_none() && to.is_none();
    if is_unbounded {
        prompt::require_answer(ctx)?;
    }
    let id = find::eval_rule(client, &ctx.settings, &args.rule).await?;
    if is_unbounded {
        let rule = &args.rule;
        let what = format!(
            "Without --from and --to, this runs the rule {rule} ({id}) on every past trace that it selects."
        );
        prompt::confirm(ctx, &what, "backfill").await?;
    }
    let Some(started) = ctx.write(client, &calls::backfill_eval_rule(id, &NewBackfill { from, to })).await?
    else {
        return Ok(());
    };
    follow(ctx, client, &started, until).await
}

async fn decisions(ctx: &mut Ctx, client: &Client, args: DecisionsArgs) -> Result {
    ctx.out.check(&DECISION_VIEW)?;
    let id = find::eval_rule(client, &ctx.settings, &args.rule).await?;
    let trace = match &args.trace {
        Some(wanted) => Some(find::trace(client, &ctx.settings, wanted).await?),
        None => None,
    };
    let empty = "no decisions yet";
    list(ctx, client, &DECISION_VIEW, args.page, empty, |page| calls::rule_decisions(id, trace, page)).await
}

#[cfg(test)]
mod tests {
    use api::client::Options;
    use stub::{StubResponse, StubServer};
    use uuid::Uuid;

    use super::*;

    /// Default timeout of the client below.
    const SHORT: Duration = Duration::from_millis(200);

    /// Returns a client of a server that responds after three times the client's default timeout.
    #[expect(clippy::disallowed_methods, reason = "the server's own threads, on no runtime")]
    fn slow() -> Client {
        let server = StubServer::new(|_, _| {
            std::thread::sleep(SHORT * 3);
            StubResponse::json(serde_json::json!({}))
        });
        let mut options = Options::new(server.url());
        options.api_key = Some("lp_test".to_owned());
        options.timeout = SHORT;
        options.retry.base = Duration::from_millis(1);
        Client::new(options).unwrap()
    }

    #[tokio::test]
    async fn rule_test_waits_longer_than_other_requests() {
        let call = calls::test_eval_rule(Uuid::nil(), &NewRuleTest { trace_id: Uuid::nil() });
        let client = slow();
        assert!(client.value(&call).await.is_err());
        assert!(judge_client(&client, None).value(&call).await.is_ok());
        assert!(judge_client(&client, Some(SHORT)).value(&call).await.is_err(), "--timeout is obeyed");
    }
}
