//! `loupe actions diff`: compares the output of a control action with the original one.

use api::client::{Client, calls};
use clap::Args;
use present::format;
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    action_id,
    diff_view::{DIFF_VIEW, DiffLayout, deltas, render},
};
use crate::{
    commands::evals::{
        poller::Poller,
        view::text_member,
        wait::{WaitArgs, combine_results},
    },
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
};

/// Arguments of `actions diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Id, or the last characters of it
    action: String,
    /// Show the outputs with changed lines below each other (default)
    #[arg(long, group = "layout")]
    unified: bool,
    /// Show the outputs beside each other
    #[arg(long, group = "layout")]
    side_by_side: bool,
    /// Show the numbers without the outputs
    #[arg(long, group = "layout")]
    stat: bool,
    /// End with code 6 if the score of an eval rule regressed
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    wait: WaitArgs,
}

impl DiffArgs {
    /// Returns whether the command waits for the evaluations of the output.
    pub fn waits(&self) -> bool {
        self.wait.is_given()
    }

    fn layout(&self) -> Option<DiffLayout> {
        match (self.unified, self.side_by_side, self.stat) {
            (true, ..) => Some(DiffLayout::Unified),
            (_, true, _) => Some(DiffLayout::SideBySide),
            (.., true) => Some(DiffLayout::Statistics),
            _ => None,
        }
    }
}

/// Shows what an action changed.
pub async fn run(ctx: &mut Ctx, args: DiffArgs) -> Result {
    ctx.out.check(&DIFF_VIEW)?;
    let until = args.wait.until()?;
    let client = ctx.session_client("comparing outputs")?;
    let id = action_id(ctx, &client, &args.action).await?;
    let diff = match until {
        Some(until) => complete_diff(ctx, &client, id, until).await?,
        None => client.value(&calls::action_diff(id)).await?,
    };
    if !is_complete(&diff) {
        let pending = pending(id, &diff, until.is_some());
        // Programs get the progress as the server sent it.
        return if ctx.out.format.is_json() {
            combine_results(ctx.out.json(&diff), Err(pending))
        } else {
            Err(pending)
        };
    }
    // Off a terminal, the format is a table for programs unless the command line asks for a text.
    let shows_text = ctx.out.format.is_table() || (args.layout().is_some() && ctx.global.output.is_none());
    let shown = if shows_text && !ctx.out.format.is_json() && ctx.global.fields.is_empty() {
        let text = render(&diff, args.layout().unwrap_or_default(), &ctx.out.style, ctx.out.columns);
        ctx.out.show(&text)
    } else {
        ctx.out.item(&DIFF_VIEW, &diff)
    };
    let judged = if args.exit_code { judge(&diff) } else { Ok(()) };
    combine_results(shown, judged)
}

/// Reads the diff until it is complete or the deadline has passed, and returns its last known state.
async fn complete_diff(ctx: &mut Ctx, client: &Client, id: Uuid, until: Instant) -> Result<Value> {
    let mut poller = Poller::until(until);
    let mut progress = ctx.out.waiting("evaluations");
    let mut diff = Value::Null;
    loop {
        let Some(seen) = poller.poll(client.value(&calls::action_diff(id))).await else { break };
        let hint = format!("continue: loupe actions diff {id} --wait");
        diff = seen.map_err(CliError::from).map_err(|error| match error.exit {
            Exit::NotFound | Exit::Conflict => error,
            _ => error.hint(hint),
        })?;
        if is_complete(&diff) {
            break;
        }
        let number = |name: &str| diff.get(name).and_then(Value::as_u64).unwrap_or_default();
        let (completed, total) = (number("completed"), number("total"));
        progress.report((total > 1).then_some((completed, total)), |elapsed| {
            format!("{}, {}", progress_words(&diff), format::elapsed(elapsed.as_secs()))
        });
        if !poller.pause_before_next_poll(1).await {
            break;
        }
    }
    Ok(diff)
}

/// Returns whether a response is the diff, not the progress of evaluations.
fn is_complete(diff: &Value) -> bool {
    diff.get("action_id").is_some()
}

fn progress_words(progress: &Value) -> String {
    let number = |name: &str| progress.get(name).and_then(Value::as_u64);
    match (number("completed"), number("total")) {
        (Some(completed), Some(total)) if total > 0 => {
            format!("{completed} of {total} evaluations of the output have ended")
        }
        _ => "the action and the evaluations of its output have not ended".to_owned(),
    }
}

/// Creates the error for a diff that is not complete.
fn pending(id: Uuid, progress: &Value, waited: bool) -> CliError {
    let hint = if waited { "wait longer" } else { "wait for it" };
    CliError::new(Exit::TimedOut, progress_words(progress))
        .hint(format!("{hint}: loupe actions diff {id} --wait --for 10m"))
}

/// Returns an error if the score of an eval rule regressed.
fn judge(diff: &Value) -> Result {
    let regressed = |it: &&Value| it.get("regressed").and_then(Value::as_bool).unwrap_or_default();
    let metrics: Vec<&str> =
        deltas(diff).iter().filter(regressed).map(|it| text_member(it, "metric_name")).collect();
    if metrics.is_empty() {
        return Ok(());
    }
    Err(CliError::new(Exit::Failed, format!("the output is worse than the original: {}", metrics.join(", "))))
}
