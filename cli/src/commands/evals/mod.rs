//! `loupe evals`: reads and requests evaluations of traces.

pub mod bulk;
pub mod gate;
pub mod list;
pub mod poller;
pub mod run;
pub mod view;
pub mod wait;

use api::client::calls;
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::{ctx::Ctx, error::Result, find};
use view::EVALUATION_VIEW;

/// Exit codes of a gate, for the help of the commands that have one.
const GATE_EXIT_CODES: &str = "Exit codes: 0 if all evaluations pass, 6 if a score is below the bound or a label matches,\n16 if an evaluation failed and has no score, 7 if the time limit --for has passed.\n";

/// Exit codes of `--wait`, for the help of commands that wait for many evaluations and have no gate.
pub const WAIT_EXIT_CODES: &str = "Exit codes with --wait: 16 if an evaluation failed and has no score, 7 if the time limit\n--for has passed.\n";

/// Verbs of `evals`.
#[derive(Debug, Subcommand)]
pub enum EvaluationCommand {
    /// List evaluations, newest first
    #[command(
        before_help = "Examples:\n  loupe evals list --label fail --from -24h\n  loupe evals list --trace c07b44d1\n  loupe evals list --metric faithfulness --max-score 0.5 --all -o csv > low.csv\n  loupe evals list --status failed --json --jq '.evaluations[].error' --raw\n"
    )]
    List(list::EvaluationListArgs),
    /// Show one evaluation
    #[command(
        before_help = "Examples:\n  loupe evals get 5e1f09aa\n  loupe evals get 9d2b3c1a --json --fields score,label,reasoning\n"
    )]
    Get(EvaluationArgs),
    /// Evaluate a trace
    #[command(
        before_help = "Examples:\n  loupe evals run c07b44d1 --metric faithfulness --wait\n  loupe evals run \"$TRACE\" --metric faithfulness --wait --for 3m \\\n    --fail-under 0.8\n  loupe evals run c07b44d1 --metric latency_threshold --wait \\\n    --config '{\"max_latency_ms\": 2000}'\n  loupe evals run c07b44d1 --metric polite --config config.json \\\n    --span 9d2b3c1a --fail-on warn\n",
        after_help = GATE_EXIT_CODES
    )]
    Run(run::RunArgs),
    /// Wait for requested evaluations
    #[command(
        before_help = "Examples:\n  loupe evals wait 5e1f09aa\n  loupe evals wait \"$FIRST\" \"$SECOND\" --for 3m --fail-on warn\n",
        after_help = GATE_EXIT_CODES
    )]
    Wait(wait::WaitForArgs),
    /// Evaluate every trace that matches a filter
    #[command(
        before_help = "Examples:\n  loupe evals bulk --metric toxicity --filter 'tag:env=prod from:-1d' --wait\n  loupe evals bulk --metric latency_threshold --model gpt-4o --from -7d \\\n    --config '{\"max_latency_ms\": 2000}'\n  id=$(loupe evals bulk --metric pii_leakage --from yesterday -o id)\n",
        after_help = format!("{WAIT_EXIT_CODES}Without a filter, the command asks for confirmation.\n")
    )]
    Bulk(bulk::BulkArgs),
    /// Show the progress of a bulk evaluation or a backfill
    #[command(
        before_help = "Examples:\n  loupe evals progress 01980f6e-5f0a-7c3e-9d2b-3c1a7b20c07b\n  loupe evals progress \"$id\" --wait --for 30m\n",
        after_help = WAIT_EXIT_CODES
    )]
    Progress(bulk::ProgressArgs),
}

impl EvaluationCommand {
    /// Returns whether the command waits for evaluations, with `--for` as its limit.
    pub fn waits(&self) -> bool {
        match self {
            Self::List(_) | Self::Get(_) => false,
            Self::Run(args) => args.waits(),
            Self::Wait(_) => true,
            Self::Bulk(args) => args.wait.is_given(),
            Self::Progress(args) => args.wait.is_given(),
        }
    }
}

/// Argument that names an evaluation.
#[derive(Debug, Args)]
pub struct EvaluationArgs {
    /// Id, or the last characters of a recent id
    id: String,
}

/// Runs a verb of `evals`.
pub async fn run(ctx: &mut Ctx, command: EvaluationCommand) -> Result {
    match command {
        EvaluationCommand::List(args) => list::run(ctx, args).await,
        EvaluationCommand::Get(args) => {
            ctx.out.check(&EVALUATION_VIEW)?;
            let client = ctx.client()?;
            let id = find::evaluation(&client, &ctx.settings, &args.id).await?;
            let evaluation = client.value(&calls::evaluation(id)).await?;
            show(ctx, &evaluation)
        }
        EvaluationCommand::Run(args) => run::run(ctx, args).await,
        EvaluationCommand::Wait(args) => wait::run(ctx, args).await,
        EvaluationCommand::Bulk(args) => bulk::run(ctx, args).await,
        EvaluationCommand::Progress(args) => bulk::progress(ctx, args).await,
    }
}

/// Shows an evaluation: in full on a terminal, otherwise as a row.
pub fn show(ctx: &mut Ctx, evaluation: &Value) -> Result {
    ctx.out.whole(&EVALUATION_VIEW, evaluation, view::sheet)
}
