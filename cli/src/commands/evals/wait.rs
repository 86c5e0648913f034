//! Waiting for evaluations: `evals wait`, and what `--wait` does elsewhere.

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

/// Judges after showing. Whoever reads may have seen enough, which is no reason to pass a gate.
pub fn shown_then(shown: Result, judged: Result) -> Result {
    match shown {
        Err(closed) if closed.exit == Exit::Done && judged.is_err() => judged,
        Err(error) => Err(error),
        Ok(()) => judged,
    }
}

/// The evaluations once all have ended, or as they are when the time is up. Each comes as it is
/// known so far.
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

/// The command that waits again.
fn again(asked: &[(Uuid, Value)]) -> String {
    let ids: Vec<String> = asked.iter().map(|(id, _)| id.to_string()).collect();
    format!("wait again: loupe evals wait {}", ids.join(" "))
}

/// What could not be looked at goes on all the same, and its id must not be lost.
fn goes_on(error: CliError, hint: &str) -> CliError {
    match error.exit {
        Exit::NotFound => error,
        _ => error.hint(hint),
    }
}
