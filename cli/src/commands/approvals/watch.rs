//! `loupe approvals watch`: polls what waits for approval, and prints each approval once.

use std::time::Duration;

use api::{
    Timestamp,
    client::{Client, Error, Retry},
};
use clap::{Args, ValueEnum};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::{id, queue::ApprovalQueue, view::APPROVAL_VIEW};
use crate::{
    args::positive,
    commands::{
        outage::{OutageTracker, is_temporary},
        seen_ids::SeenIds,
    },
    config::{duration, expiry::SessionExpiry},
    ctx::Ctx,
    env::now,
    error::{CliError, Result},
    exit::Exit,
    find,
};

/// Maximum number of deployments, and of actions, that are read in each interval.
const MAX_WATCHED: usize = 2_000;
/// Minimum interval between two reads.
const MIN_INTERVAL: Duration = Duration::from_millis(200);

/// Arguments of `approvals watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Polling interval
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    interval: String,
    /// Skip what waits at the start
    #[arg(long)]
    new_only: bool,
    /// End after this many approvals
    #[arg(short, long, value_name = "N", value_parser = positive::<u64>)]
    max: Option<u64>,
    /// End after this long
    #[arg(long = "for", value_name = "DURATION")]
    limit: Option<String>,
    /// End with code 0 at the first approval; with --for, code 7 if there is none
    #[arg(long, value_enum)]
    exit_on: Option<WatchExitOn>,
}

/// Values of `--exit-on` of `watch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WatchExitOn {
    Match,
}

/// State of a run of `watch`.
struct ApprovalWatch {
    client: Client,
    session: Option<SessionExpiry>,
    project: Option<Uuid>,
    interval: Duration,
    /// Number of approvals that may still be printed.
    left: Option<u64>,
    seen: SeenIds,
    outages: OutageTracker,
}

/// Prints approvals until the command is stopped or reaches its limit.
pub async fn run(ctx: &mut Ctx, args: WatchArgs) -> Result {
    let interval = duration(&args.interval)?.max(MIN_INTERVAL);
    let limit = args.limit.as_deref().map(duration).transpose()?;
    let project = find::current_project(&ctx.session_client("watching approvals")?, &ctx.settings).await?;
    // This command handles outages itself, so its client does not retry.
    let mut options = ctx.settings.client(None);
    options.retry = Retry::NEVER;
    let mut watch = ApprovalWatch {
        client: Client::new(options)?,
        session: SessionExpiry::of(&ctx.settings),
        project,
        interval,
        left: if args.exit_on.is_some() { Some(1) } else { args.max },
        seen: SeenIds::default(),
        outages: OutageTracker::default(),
    };
    let work = watch.follow(ctx, !args.new_only);
    let Some(limit) = limit else { return work.await };
    match timeout(limit, work).await {
        Ok(ended) => ended,
        Err(_) if args.exit_on.is_some() => {
            let message = format!("no approval was needed within {limit:?}");
            Err(CliError::new(Exit::TimedOut, message))
        }
        Err(_) => Ok(()),
    }
}

impl ApprovalWatch {
    async fn follow(&mut self, ctx: &mut Ctx, prints_first: bool) -> Result {
        let mut is_first = true;
        loop {
            match ApprovalQueue::read(&self.client, self.project, MAX_WATCHED).await {
                // If the server was never reached, the address is probably wrong, so the command ends.
                Err(error) if is_first || !is_temporary(&error) => return Err(error.into()),
                Err(error) => {
                    self.wait_after(ctx, &error).await;
                    continue;
                }
                Ok(queue) => {
                    if let Some(seconds) = self.outages.end() {
                        ctx.out.note(&format!("connected again after {seconds}s"));
                    }
                    if self.print(ctx, &queue, prints_first || !is_first)? {
                        return Ok(());
                    }
                }
            }
            if std::mem::take(&mut is_first) {
                let what = ctx.settings.project.as_ref().map_or("all projects", |it| it.value.as_str());
                ctx.out.note(&format!(
                    "watching the approvals of {what}, every {:?} (Ctrl-C to stop)",
                    self.interval
                ));
            }
            if let Some(warning) = self.session.as_mut().and_then(SessionExpiry::warning) {
                ctx.out.note(&warning);
            }
            sleep(self.interval).await;
        }
    }

    /// Prints the approvals that were not seen before, oldest first. Returns whether enough were printed.
    fn print(&mut self, ctx: &mut Ctx, queue: &ApprovalQueue, print: bool) -> Result<bool> {
        // Ages count from this read.
        ctx.out.style.now = Timestamp::from(now().to_utc());
        for row in queue.rows().iter().rev() {
            if !self.seen.record(id(row)) || !print {
                continue;
            }
            ctx.out.row(&APPROVAL_VIEW, row)?;
            if let Some(left) = &mut self.left {
                *left -= 1;
                if *left == 0 {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    async fn wait_after(&mut self, ctx: &mut Ctx, error: &Error) {
        let (wait, message) = self.outages.record(error);
        ctx.out.note(&message);
        sleep(wait).await;
    }
}
