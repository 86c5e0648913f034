//! Waiting for evaluations: `evals wait`, and what `--wait` does elsewhere.

use std::time::Duration;

use api::client::{Client, calls};
use clap::Args;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tui::format;
use uuid::Uuid;

use super::{
    gate::GateArgs,
    view::{VIEW, word},
};
use crate::{
    config::duration,
    ctx::Ctx,
    error::{CliError, Result},
    exit::Exit,
    find,
};

/// The first pause between two looks; each further one is half as long again.
const FIRST: Duration = Duration::from_millis(150);
/// The longest pause between two looks.
const LONGEST: Duration = Duration::from_secs(2);

/// How long to wait.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Waiting")]
pub struct WaitArgs {
    /// Wait until it has ended
    #[arg(long)]
    pub wait: bool,
    /// When waiting ends without a result.
    #[command(flatten)]
    pub limit: LimitArgs,
}

/// When waiting ends without a result.
#[derive(Clone, Debug, Args)]
pub struct LimitArgs {
    /// Wait at most this long, then end with code 7; 10m if nothing is given
    #[arg(long = "for", value_name = "DURATION")]
    limit: Option<String>,
}

impl WaitArgs {
    /// Whether it waits at all.
    pub fn is_given(&self) -> bool {
        self.wait || self.limit.limit.is_some()
    }

    /// Until when to wait, if at all. Naming a limit is asking to wait.
    pub fn until(&self) -> Result<Option<Instant>> {
        if self.is_given() { Ok(Some(self.limit.until()?)) } else { Ok(None) }
    }
}

impl LimitArgs {
    /// The moment at which waiting ends.
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

/// Waits for evaluations, shows them and judges them.
pub async fn run(ctx: &mut Ctx, args: WaitForArgs) -> Result {
    ctx.out.check(&VIEW)?;
    let until = args.limit.until()?;
    let client = ctx.client()?;
    let mut ids: Vec<Uuid> = Vec::new();
    for wanted in &args.ids {
        let id = find::evaluation(&client, &ctx.settings, wanted).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let rows = ended(ctx, &client, &ids, until).await?;
    let document = json!({ VIEW.plural: rows, "has_more": false, "next_cursor": null });
    let judged = args.gate.judge(&rows);
    shown_then(ctx.out.list(&VIEW, document), judged)
}

/// Judges after showing. Whoever reads may have seen enough, which is no reason to pass a gate.
pub fn shown_then(shown: Result, judged: Result) -> Result {
    match shown {
        Err(closed) if closed.exit == Exit::Done && judged.is_err() => judged,
        Err(error) => Err(error),
        Ok(()) => judged,
    }
}

/// The evaluations once all have ended, or as they are when the time is up.
pub async fn ended(ctx: &mut Ctx, client: &Client, ids: &[Uuid], until: Instant) -> Result<Vec<Value>> {
    let mut rows = vec![Value::Null; ids.len()];
    let mut pause = FIRST;
    let mut progress = ctx.out.waiting();
    loop {
        for (row, id) in rows.iter_mut().zip(ids).filter(|(row, _)| !has_ended(row)) {
            *row = client.value(&calls::evaluation(*id)).await.map_err(|error| goes_on(error.into(), ids))?;
        }
        let left = rows.iter().filter(|row| !has_ended(row)).count();
        if left == 0 || Instant::now() >= until {
            return Ok(rows);
        }
        progress.tell(|elapsed| {
            let state = match rows.as_slice() {
                [row] => format!("{} is {}", word(row, "metric_name"), word(row, "status")),
                several => format!("{} of {} evaluations done", several.len() - left, several.len()),
            };
            format!("{state}, {}", format::elapsed(i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX)))
        });
        pause = rest(pause, until).await;
    }
}

/// Sleeps, not beyond the end, and answers how long the next pause is.
pub async fn rest(pause: Duration, until: Instant) -> Duration {
    sleep(pause.min(until.saturating_duration_since(Instant::now()))).await;
    pause.mul_f64(1.5).min(LONGEST)
}

/// The first pause of [`rest`].
pub fn first_pause() -> Duration {
    FIRST
}

fn has_ended(row: &Value) -> bool {
    matches!(word(row, "status"), "complete" | "failed")
}

/// What could not be looked at goes on all the same, and its id must not be lost.
fn goes_on(error: CliError, ids: &[Uuid]) -> CliError {
    let ids: Vec<String> = ids.iter().map(Uuid::to_string).collect();
    match error.exit {
        Exit::NotFound => error,
        _ => error.hint(format!("wait again: loupe evals wait {}", ids.join(" "))),
    }
}
