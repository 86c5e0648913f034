//! Waits for evaluations: `evals wait`, and `--wait` of other commands.

use api::client::{Client, calls};
use clap::Args;
use present::format;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    gate::GateArgs,
    poller::Poller,
    view::{EVALUATION_VIEW, text_member},
};
use crate::{
    commands::listing::last_page,
    config::duration,
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
    find,
};

/// Flags of commands that can wait.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Waiting")]
pub struct WaitArgs {
    /// Wait until the result is known
    #[arg(long)]
    pub wait: bool,
    /// Time limit of waiting.
    #[command(flatten)]
    pub limit: WaitLimitArgs,
}

/// Time limit of waiting.
#[derive(Clone, Debug, Args)]
pub struct WaitLimitArgs {
    /// Wait at most this long, then end with code 7 (default: 10m)
    #[arg(long = "for", value_name = "DURATION")]
    limit: Option<String>,
}

impl WaitArgs {
    /// Returns whether to wait.
    pub fn is_given(&self) -> bool {
        self.wait || self.limit.limit.is_some()
    }

    /// Returns the deadline of waiting; `None` if the command does not wait. `--for` implies `--wait`.
    pub fn until(&self) -> Result<Option<Instant>> {
        if self.is_given() { Ok(Some(self.limit.until()?)) } else { Ok(None) }
    }
}

impl WaitLimitArgs {
    /// Returns the deadline of waiting.
    pub fn until(&self) -> Result<Instant> {
        let limit = self.limit.as_deref().unwrap_or("10m");
        let limit =
            duration(limit).map_err(|error| CliError { message: format!("--for: {error}"), ..error })?;
        let now = Instant::now();
        Ok(now.checked_add(limit).unwrap_or(now))
    }
}

/// Arguments of `evals wait`.
#[derive(Debug, Args)]
pub struct WaitForArgs {
    /// Ids, or the last characters of recent ids
    #[arg(required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    limit: WaitLimitArgs,
    #[command(flatten)]
    gate: GateArgs,
}

/// Waits for evaluations, shows them and checks them against the gate.
pub async fn run(ctx: &mut Ctx, args: WaitForArgs) -> Result {
    ctx.out.check(&EVALUATION_VIEW)?;
    let until = args.limit.until()?;
    let client = ctx.client()?;
    let mut evaluations: Vec<(Uuid, Value)> = Vec::new();
    for wanted in &args.ids {
        let id = find::evaluation(&client, &ctx.settings, wanted).await?;
        if evaluations.iter().all(|(known, _)| *known != id) {
            evaluations.push((id, json!({ "id": id })));
        }
    }
    let rows = wait_for_all(ctx, &client, evaluations, until).await?;
    let judged = args.gate.judge(&rows);
    combine_results(ctx.out.list(&EVALUATION_VIEW, last_page(EVALUATION_VIEW.plural, rows)), judged)
}

/// Combines the result of the output with the result of the gate. A reader that closes the pipe must not
/// make the gate pass.
pub fn combine_results(shown: Result, judged: Result) -> Result {
    match shown {
        Err(closed) if closed.exit == Exit::Success && judged.is_err() => judged,
        Err(error) => Err(error),
        Ok(()) => judged,
    }
}

/// Waits until all evaluations have ended or the deadline has passed, and returns their last known states.
pub async fn wait_for_all(
    ctx: &mut Ctx,
    client: &Client,
    mut evaluations: Vec<(Uuid, Value)>,
    until: Instant,
) -> Result<Vec<Value>> {
    let hint = wait_command(&evaluations);
    let mut poller = Poller::until(until);
    let mut progress = ctx.out.waiting("evaluations");
    'polls: loop {
        for (id, row) in evaluations.iter_mut().filter(|(_, row)| !is_finished(row)) {
            let Some(seen) = poller.poll(client.value(&calls::evaluation(*id))).await else {
                break 'polls;
            };
            *row = seen.map_err(|error| with_wait_hint(error.into(), &hint))?;
        }
        let left = evaluations.iter().filter(|(_, row)| !is_finished(row)).count();
        if left == 0 {
            break;
        }
        let done = evaluations.len() - left;
        let bar = (evaluations.len() > 1).then_some((done as u64, evaluations.len() as u64));
        progress.report(bar, |elapsed| {
            let state = match evaluations.as_slice() {
                [(_, row)] => {
                    format!("{} is {}", text_member(row, "metric_name"), text_member(row, "status"))
                }
                several => format!("{} of {} evaluations done", done, several.len()),
            };
            format!("{state}, {}", format::elapsed(elapsed.as_secs()))
        });
        if !poller.pause_before_next_poll(left).await {
            break;
        }
    }
    Ok(evaluations.into_iter().map(|(_, row)| row).collect())
}

fn is_finished(row: &Value) -> bool {
    matches!(text_member(row, "status"), "complete" | "failed")
}

/// Returns the command that waits for the same evaluations again.
fn wait_command(evaluations: &[(Uuid, Value)]) -> String {
    let ids: Vec<String> = evaluations.iter().map(|(id, _)| id.to_string()).collect();
    format!("wait again: loupe evals wait {}", ids.join(" "))
}

/// Adds the command that waits again to an error: the evaluations continue, and the user needs their ids.
fn with_wait_hint(error: CliError, hint: &str) -> CliError {
    match error.exit {
        Exit::NotFound => error,
        _ => error.hint(hint),
    }
}
