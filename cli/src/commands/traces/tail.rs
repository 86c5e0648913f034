//! `loupe traces tail`: follows the live stream, or polls the list if the server has no stream.
//!
//! Both print each trace once, oldest first, and miss none: after every connection the list is read from a
//! minute before the newest trace seen ([`Seen`]).

use std::time::Duration;

use api::{
    Timestamp,
    client::{
        Client, Error, Retry, StreamEvent,
        calls::{self, Page},
    },
    filter::Filter,
};
use clap::{Args, ValueEnum};
use present::format;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::{VIEW, filter_args::FilterArgs, follow::Seen};
use crate::{
    args::positive,
    config::{duration, expiry::Expiry},
    ctx::Ctx,
    env::now,
    error::{CliError, Result},
    exit::Exit,
    find,
    output::cell::{self, Tone},
    pages::next_cursor,
};

/// Maximum number of pages that are read before their traces are printed.
const MOST_PAGES: usize = 100;
/// Maximum delay between two attempts to reach the server.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Arguments of `traces tail`.
#[derive(Debug, Args)]
pub struct TailArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Start with traces from this long ago
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    since: String,
    /// Polling interval, if the server has no live stream
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    interval: String,
    /// End after this many traces
    #[arg(short, long, value_name = "N", value_parser = positive::<u64>)]
    max: Option<u64>,
    /// End after this long
    #[arg(long = "for", value_name = "DURATION")]
    limit: Option<String>,
    /// End with code 0 at the first trace; with --for, code 7 if there is none
    #[arg(long, value_enum)]
    exit_on: Option<ExitOn>,
    /// Additional line for each trace in a table
    #[arg(long, value_enum)]
    show: Option<Show>,
    /// Poll the list even if the server has a live stream
    #[arg(long)]
    poll: bool,
}

/// Values of `--exit-on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExitOn {
    Match,
}

/// Values of `--show`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Show {
    /// The error message.
    Error,
    /// The first line of input and output.
    Io,
}

/// Follows traces until the command is stopped or reaches its limit.
pub async fn run(ctx: &mut Ctx, args: TailArgs) -> Result {
    ctx.out.check(&VIEW)?;
    let filter = args.filter.resolve(ctx)?;
    let since = duration(&args.since)?;
    let interval = duration(&args.interval)?.max(Duration::from_millis(200));
    let limit = args.limit.as_deref().map(duration).transpose()?;
    // This command handles outages itself, so its client does not retry.
    let mut options = ctx.settings.client(None);
    let project = find::current_project(&ctx.client()?, &ctx.settings).await?;
    options.retry = Retry::NEVER;
    let client = Client::new(options)?;

    let start = Timestamp::from(now().to_utc());
    let start = Timestamp::from_micros(start.micros().saturating_sub_unsigned(since.as_micros() as u64));
    let most = if args.exit_on.is_some() { Some(1) } else { args.max };
    // The client prefers an API key, so the session's expiry matters only without one.
    let session = if client.has_api_key() { None } else { Expiry::of(&ctx.settings) };
    let mut tail = Tail {
        client,
        session,
        filter,
        project,
        seen: Seen::from(start),
        interval,
        show: args.show,
        left: most,
        live: !args.poll,
        primed: !since.is_zero(),
        last_event: None,
        outage: None,
        announced: false,
    };
    let Some(limit) = limit else {
        return tail.follow(ctx).await;
    };
    match timeout(limit, tail.follow(ctx)).await {
        Ok(ended) => ended,
        Err(_) if args.exit_on.is_some() => {
            Err(CliError::new(Exit::TimedOut, format!("no trace matched within {limit:?}")))
        }
        Err(_) => Ok(()),
    }
}

/// State of a run of `tail`.
struct Tail {
    client: Client,
    session: Option<Expiry>,
    filter: Filter,
    project: Option<Uuid>,
    seen: Seen,
    interval: Duration,
    show: Option<Show>,
    /// Number of traces that may still be printed.
    left: Option<u64>,
    /// Whether to try the live stream.
    live: bool,
    /// Whether the traces that existed at the start are recorded.
    primed: bool,
    last_event: Option<String>,
    outage: Option<Outage>,
    announced: bool,
}

/// A period in which the server can't be reached.
struct Outage {
    since: Instant,
    tries: u32,
}

/// Reason why following pauses or ends.
enum Stop {
    /// The maximum number of traces was printed.
    Enough,
    /// The server has no live stream.
    NoStream,
    Failed(CliError),
    Client(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

impl From<CliError> for Stop {
    fn from(error: CliError) -> Self {
        Self::Failed(error)
    }
}

impl Tail {
    async fn follow(&mut self, ctx: &mut Ctx) -> Result {
        loop {
            let stop = match self.round(ctx).await {
                Ok(()) => continue,
                Err(stop) => stop,
            };
            match stop {
                Stop::Enough => return Ok(()),
                Stop::Failed(error) => return Err(error),
                Stop::NoStream => self.live = false,
                Stop::Client(error) => self.lost(ctx, error).await?,
            }
        }
    }

    /// Follows one connection of the stream, or reads the list once.
    async fn round(&mut self, ctx: &mut Ctx) -> std::result::Result<(), Stop> {
        if !self.primed {
            self.read_list(ctx, false).await?;
            self.primed = true;
        }
        if !self.live {
            let wait = self.read_list(ctx, true).await?;
            self.announce(ctx);
            self.warn(ctx);
            sleep(wait).await;
            return Ok(());
        }
        let call = calls::trace_stream(&self.filter, self.project);
        let mut stream = match self.client.stream(&call, self.last_event.as_deref()).await {
            Ok(stream) => stream,
            Err(Error::NotAStream) => return Err(Stop::NoStream),
            // Older servers read the path segment `stream` as a trace id.
            Err(error) if matches!(error.status(), Some(400 | 404 | 405 | 422 | 501)) => {
                return Err(Stop::NoStream);
            }
            Err(error) => return Err(error.into()),
        };
        // The stream is opened before the list is read, so that no trace is missed in between.
        self.read_list(ctx, true).await?;
        self.announce(ctx);
        while let Some(event) = stream.next().await {
            match event? {
                StreamEvent::Alive => self.warn(ctx),
                StreamEvent::Lagged { cursor } => {
                    self.last_event = cursor.or_else(|| self.last_event.take());
                    ctx.out.note("fell behind the live stream; going on from the last trace received");
                    // The next iteration opens the stream after that trace.
                    return Ok(());
                }
                StreamEvent::Trace { id, trace } => {
                    self.last_event = id.or_else(|| self.last_event.take());
                    self.print(ctx, &trace)?;
                }
            }
        }
        Err(Error::Unreachable {
            url: self.client.url().to_string(),
            why: "the server ended the stream".to_owned(),
            sent: true,
        }
        .into())
    }

    /// Reads the list back to known traces and prints the new ones, oldest first. Returns how long to wait
    /// before the next read.
    async fn read_list(&mut self, ctx: &mut Ctx, print: bool) -> std::result::Result<Duration, Stop> {
        let begun = Instant::now();
        let filter = self.filter.clone().since(self.seen.resume());
        let mut page = Page { limit: Some(200), cursor: None };
        let mut found: Vec<Value> = Vec::new();
        let mut wait = self.interval;
        for _ in 0..MOST_PAGES {
            let answer =
                self.client.send(&super::page(ctx.out.shows_texts(), &filter, self.project, &page)).await?;
            if let Some((limit, remaining)) = answer.rate_limit()
                && remaining.saturating_mul(10) < limit
            {
                wait = self.interval * 2;
                ctx.out.note(&format!(
                    "{remaining} of {limit} requests left in this minute; reading every {wait:?}"
                ));
            }
            let mut document: Value = answer.json()?;
            page.cursor = next_cursor(&document);
            let rows = match document.get_mut(VIEW.plural).map(Value::take) {
                Some(Value::Array(rows)) => rows,
                _ => Vec::new(),
            };
            let all_known = !rows.is_empty() && rows.iter().all(|row| self.seen.knows(row));
            found.extend(rows);
            if page.cursor.is_none() || all_known {
                break;
            }
        }
        self.back(ctx);
        if page.cursor.is_some() && found.len() >= MOST_PAGES * 200 {
            let (count, seconds) = (format::thousands(found.len() as i64), begun.elapsed().as_secs());
            ctx.out.note(&format!(
                "falling behind: {count} traces in {seconds}s; narrow the filter or use --interval"
            ));
        }
        for trace in found.iter().rev() {
            if print {
                self.print(ctx, trace)?;
            } else {
                self.seen.note(trace);
            }
        }
        Ok(wait)
    }

    fn print(&mut self, ctx: &mut Ctx, trace: &Value) -> std::result::Result<(), Stop> {
        if !self.seen.note(trace) {
            return Ok(());
        }
        ctx.out.row(&VIEW, trace)?;
        if ctx.out.format.is_table() {
            self.print_more(ctx, trace)?;
        }
        if let Some(left) = &mut self.left {
            *left -= 1;
            if *left == 0 {
                return Err(Stop::Enough);
            }
        }
        Ok(())
    }

    fn print_more(&self, ctx: &mut Ctx, trace: &Value) -> Result {
        let members: &[&str] = match self.show {
            None => &[],
            Some(Show::Error) => &["error"],
            Some(Show::Io) => &["input", "output"],
        };
        for name in members {
            let Some(text) = trace.get(*name).and_then(Value::as_str) else { continue };
            let style = &ctx.out.style;
            let (room, tone) = match self.show {
                // Error messages are not cut.
                Some(Show::Error) => (usize::MAX / 64, Tone::Bad),
                _ => (ctx.out.columns.unwrap_or(120).saturating_sub(11), Tone::Dim),
            };
            let line = if self.show == Some(Show::Error) {
                cell::Cell::plain(text).text
            } else {
                present::text::cut(text, room, &style.glyphs)
            };
            let line = format!("  {name:<7}  {}\n", style.paint(&line, tone));
            ctx.out.write(&line)?;
        }
        Ok(())
    }

    /// Warns when the session is about to end.
    fn warn(&mut self, ctx: &mut Ctx) {
        if let Some(warning) = self.session.as_mut().and_then(Expiry::warning) {
            ctx.out.note(&warning);
        }
    }

    /// Prints once which traces are followed.
    fn announce(&mut self, ctx: &mut Ctx) {
        if std::mem::replace(&mut self.announced, true) {
            return;
        }
        let what = ctx.settings.project.as_ref().map_or("all projects", |project| project.value.as_str());
        let how = if self.live { "live".to_owned() } else { format!("every {:?}", self.interval) };
        let newest =
            self.seen.newest().map(|time| format!(", newest {}", clock(ctx, time))).unwrap_or_default();
        ctx.out.note(&format!("following {what}, {how}{newest} (Ctrl-C to stop)"));
    }

    /// Waits after a temporary failure; returns other failures as errors.
    async fn lost(&mut self, ctx: &mut Ctx, error: Error) -> Result {
        let passing = match &error {
            Error::Unreachable { .. } => true,
            Error::Answer(answer) => answer.status == 429 || answer.status >= 500,
            _ => false,
        };
        // If the server was never reached, the address is probably wrong, so the command ends.
        if !passing || !self.announced {
            let mut failed = CliError::from(error);
            if let Some(newest) = self.seen.newest().filter(|_| self.announced) {
                failed.detail.push(format!("the newest trace printed began at {newest}"));
            }
            return Err(failed);
        }
        let outage = self.outage.get_or_insert_with(|| Outage { since: Instant::now(), tries: 0 });
        let doubled = Duration::from_secs(1 << outage.tries.min(5)).min(LONGEST_WAIT);
        outage.tries += 1;
        let asked = error.answer().and_then(|answer| answer.retry_after);
        let wait = asked.unwrap_or(doubled);
        let time = now().format("%H:%M:%S");
        let seconds = wait.as_secs();
        match error.status() {
            Some(_) => ctx.out.note(&format!("{} at {time}, retrying in {seconds}s", error.cause())),
            None => {
                ctx.out.note(&format!("connection lost {time} ({}), retrying in {seconds}s", error.cause()))
            }
        }
        sleep(wait).await;
        Ok(())
    }

    /// Prints that the server is reachable again.
    fn back(&mut self, ctx: &mut Ctx) {
        if let Some(outage) = self.outage.take() {
            let from = clock(ctx, self.seen.resume());
            let seconds = outage.since.elapsed().as_secs();
            ctx.out.note(&format!("back after {seconds}s, catching up from {from}"));
        }
    }
}

fn clock(ctx: &Ctx, time: Timestamp) -> String {
    format::clock(ctx.out.style.zone(), time, now().to_utc().into())
}
