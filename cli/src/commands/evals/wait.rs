//! Waits for evaluations: `evals wait`, and `--wait` of other commands.

use api::client::{Client, calls};
use clap::Args;
use present::format;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    gate::GateArgs,
    patience::Patience,
    view::{VIEW, word},
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
    pub limit: LimitArgs,
}

/// Time limit of waiting.
#[derive(Clone, Debug, Args)]
pub struct LimitArgs {
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

impl LimitArgs {
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
    limit: LimitArgs,
    #[command(flatten)]
    gate: GateArgs,
}

/// Waits for evaluations, shows them and checks them against the gate.
pub async fn run(ctx: &mut Ctx, args: WaitForArgs) -> Result {
    ctx.out.check(&VIEW)?;
    let until = args.limit.until()?;
    let client = ctx.client()?;
    let mut asked: Vec<(Uuid, Value)> = Vec::new();
    for wanted in &args.ids {
        let id = find::evaluation(&client, &ctx.settings, wanted).await?;
        if asked.iter().all(|(known, _)| *known != id) {
            asked.push((id, json!({ "id": id })));
        }
    }
    let rows = ended(ctx, &client, asked, until).await?;
    let judged = args.gate.judge(&rows);
    shown_then(ctx.out.list(&VIEW, last_page(VIEW.plural, rows)), judged)
}

/// Combines the result of the output with the result of the gate. A reader that closes the pipe must not
/// make the gate pass.
pub fn shown_then(shown: Result, judged: Result) -> Result {
    match shown {
        Err(closed) if closed.exit == Exit::Done && judged.is_err() => judged,
        Err(error) => Err(error),
        Ok(()) => judged,
    }
}

/// Waits until all evaluations have ended or the deadline has passed, and returns their last known states.
pub async fn ended(
    ctx: &mut Ctx,
    client: &Client,
    mut asked: Vec<(Uuid, Value)>,
    until: Instant,
) -> Result<Vec<Value>> {
    let hint = again(&asked);
    let mut patience = Patience::until(until);
    let mut progress = ctx.out.waiting("evaluations");
    'looking: loop {
        for (id, row) in asked.iter_mut().filter(|(_, row)| !has_ended(row)) {
            let Some(seen) = patience.look(client.value(&calls::evaluation(*id))).await else {
                break 'looking;
            };
            *row = seen.map_err(|error| goes_on(error.into(), &hint))?;
        }
        let left = asked.iter().filter(|(_, row)| !has_ended(row)).count();
        if left == 0 {
            break;
        }
        let done = asked.len() - left;
        let bar = (asked.len() > 1).then_some((done as u64, asked.len() as u64));
        progress.report(bar, |elapsed| {
            let state = match asked.as_slice() {
                [(_, row)] => format!("{} is {}", word(row, "metric_name"), word(row, "status")),
                several => format!("{} of {} evaluations done", done, several.len()),
            };
            format!("{state}, {}", format::elapsed(elapsed.as_secs()))
        });
        if !patience.rest(left).await {
            break;
        }
    }
    Ok(asked.into_iter().map(|(_, row)| row).collect())
}

fn has_ended(row: &Value) -> bool {
    matches!(word(row, "status"), "complete" | "failed")
}

/// Returns the command that waits for the same evaluations again.
fn again(asked: &[(Uuid, Value)]) -> String {
    let ids: Vec<String> = asked.iter().map(|(id, _)| id.to_string()).collect();
    format!("wait again: loupe evals wait {}", ids.join(" "))
}

/// Adds the command to continue waiting to an error: the evaluations go on, and the user needs their ids.
fn goes_on(error: CliError, hint: &str) -> CliError {
    match error.exit {
        Exit::NotFound => error,
        _ => error.hint(hint),
    }
}
