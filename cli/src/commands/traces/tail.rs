//! `loupe traces tail`: follows the live stream, or polls the list if the server has no stream.
//!
//! Both print each trace once, oldest first, and miss none: after every connection the list is read from a
//! minute before the newest trace seen (`SeenTraces`).

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

use super::{TRACE_VIEW, filter_args::TraceFilterArgs, seen::SeenTraces};
use crate::{
    args::positive,
    commands::outage::{OutageTracker, is_temporary},
    config::{duration, expiry::SessionExpiry},
    ctx::Ctx,
    env::now,
    error::{CliError, Result},
    exit::Exit,
    find,
    output::cell::{self, Tone},
    pages::next_cursor,
};

/// Maximum number of pages that are read before their traces are printed.
const MAX_PAGES_PER_READ: usize = 100;

/// Arguments of `traces tail`.
#[derive(Debug, Args)]
pub struct TailArgs {
    #[command(flatten)]
    filter: TraceFilterArgs,
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
    show: Option<ExtraLine>,
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
enum ExtraLine {
    /// The error message.
    Error,
    /// The first line of input and output.
    Io,
}

/// Follows traces until the command is stopped or reaches its limit.
pub async fn run(ctx: &mut Ctx, args: TailArgs) -> Result {
    ctx.out.check(&TRACE_VIEW)?;
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
    let session = if client.has_api_key() { None } else { SessionExpiry::of(&ctx.settings) };
    let mut tail = Tail {
        client,
        session,
        filter,
        project,
        seen: SeenTraces::from(start),
        interval,
        show: args.show,
        left: most,
        uses_stream: !args.poll,
        is_primed: !since.is_zero(),
        last_event: None,
        outages: OutageTracker::default(),
        is_announced: false,
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
    session: Option<SessionExpiry>,
    filter: Filter,
    project: Option<Uuid>,
    seen: SeenTraces,
    interval: Duration,
    show: Option<ExtraLine>,
    /// Number of traces that may still be printed.
    left: Option<u64>,
    /// Whether to try the live stream.
    uses_stream: bool,
    /// Whether the traces that existed at the start are recorded.
    is_primed: bool,
    last_event: Option<String>,
    outages: OutageTracker,
    is_announced: bool,
}

/// Reason why following pauses or ends.
enum FollowEnd {
    /// The maximum number of traces was printed.
    Enough,
    /// The server has no live stream.
    NoStream,
    Failed(CliError),
    Client(Error),
}

impl From<Error> for FollowEnd {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

impl From<CliError> for FollowEnd {
    fn from(error: CliError) -> Self {
        Self::Failed(error)
    }
}

impl Tail {
    async fn follow(&mut self, ctx: &mut Ctx) -> Result {
        loop {
            let stop = match self.follow_once(ctx).await {
                Ok(()) => continue,
                Err(stop) => stop,
            };
            match stop {
                FollowEnd::Enough => return Ok(()),
                FollowEnd::Failed(error) => return Err(error),
                FollowEnd::NoStream => self.uses_stream = false,
                FollowEnd::Client(error) => self.wait_after_failure(ctx, error).await?,
            }
        }
    }

    /// Follows one connection of the stream, or reads the list once.
    async fn follow_once(&mut self, ctx: &mut Ctx) -> std::result::Result<(), FollowEnd> {
        if !self.is_primed {
            self.read_list(ctx, false).await?;
            self.is_primed = true;
        }
        if !self.uses_stream {
            let wait = self.read_list(ctx, true).await?;
            self.announce(ctx);
            self.warn_about_expiry(ctx);
            sleep(wait).await;
            return Ok(());
        }
        let call = calls::trace_stream(&self.filter, self.project);
        let mut stream = match self.client.stream(&call, self.last_event.as_deref()).await {
            Ok(stream) => stream,
            Err(Error::NotAStream) => return Err(FollowEnd::NoStream),
            // Older servers read the path segment `stream` as a trace id.
            Err(error) if matches!(error.status(), Some(400 | 404 | 405 | 422 | 501)) => {
                return Err(FollowEnd::NoStream);
            }
            Err(error) => return Err(error.into()),
        };
        // The stream is opened before the list is read, so that no trace is missed in between.
        self.read_list(ctx, true).await?;
        self.announce(ctx);
        while let Some(event) = stream.next().await {
            match event? {
                StreamEvent::Alive => self.warn_about_expiry(ctx),
                StreamEvent::Lagged { cursor } => {
                    self.last_event = cursor.or_else(|| self.last_event.take());
                    ctx.out.note("fell behind the live stream; continuing after the last trace received");
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
    async fn read_list(&mut self, ctx: &mut Ctx, print: bool) -> std::result::Result<Duration, FollowEnd> {
        let begun = Instant::now();
        let filter = self.filter.clone().since(self.seen.resume());
        let mut page = Page { limit: Some(200), cursor: None };
        let mut found: Vec<Value> = Vec::new();
        let mut wait = self.interval;
        for _ in 0..MAX_PAGES_PER_READ {
            let response =
                self.client.send(&super::page(ctx.out.shows_texts(), &filter, self.project, &page)).await?;
            if let Some((limit, remaining)) = response.rate_limit()
                && remaining.saturating_mul(10) < limit
            {
                wait = self.interval * 2;
                ctx.out.note(&format!(
                    "{remaining} of {limit} requests left in this minute; reading every {wait:?}"
                ));
            }
            let mut document: Value = response.json()?;
            page.cursor = next_cursor(&document);
            let rows = match document.get_mut(TRACE_VIEW.plural).map(Value::take) {
                Some(Value::Array(rows)) => rows,
                _ => Vec::new(),
            };
            let all_known = !rows.is_empty() && rows.iter().all(|row| self.seen.contains(row));
            found.extend(rows);
            if page.cursor.is_none() || all_known {
                break;
            }
        }
        self.note_recovery(ctx);
        if page.cursor.is_some() && found.len() >= MAX_PAGES_PER_READ * 200 {
            let (count, seconds) = (format::thousands(found.len() as i64), begun.elapsed().as_secs());
            ctx.out.note(&format!(
                "tail is falling behind: {count} traces in {seconds}s; narrow the filter or use --interval"
            ));
        }
        for trace in found.iter().rev() {
            if print {
                self.print(ctx, trace)?;
            } else {
                self.seen.record(trace);
            }
        }
        Ok(wait)
    }

    fn print(&mut self, ctx: &mut Ctx, trace: &Value) -> std::result::Result<(), FollowEnd> {
        if !self.seen.record(trace) {
            return Ok(());
        }
        ctx.out.row(&TRACE_VIEW, trace)?;
        if ctx.out.format.is_table() {
            self.print_more(ctx, trace)?;
        }
        if let Some(left) = &mut self.left {
            *left -= 1;
            if *left == 0 {
                return Err(FollowEnd::Enough);
            }
        }
        Ok(())
    }

    fn print_more(&self, ctx: &mut Ctx, trace: &Value) -> Result {
        let members: &[&str] = match self.show {
            None => &[],
            Some(ExtraLine::Error) => &["error"],
            Some(ExtraLine::Io) => &["input", "output"],
        };
        for name in members {
            let Some(text) = trace.get(*name).and_then(Value::as_str) else { continue };
            let style = &ctx.out.style;
            let (room, tone) = match self.show {
                // Error messages are not cut.
                Some(ExtraLine::Error) => (usize::MAX / 64, Tone::Bad),
                _ => (ctx.out.columns.unwrap_or(120).saturating_sub(11), Tone::Dim),
            };
            let line = if self.show == Some(ExtraLine::Error) {
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
    fn warn_about_expiry(&mut self, ctx: &mut Ctx) {
        if let Some(warning) = self.session.as_mut().and_then(SessionExpiry::warning) {
            ctx.out.note(&warning);
        }
    }

    /// Prints once which traces are followed.
    fn announce(&mut self, ctx: &mut Ctx) {
        if std::mem::replace(&mut self.is_announced, true) {
            return;
        }
        let what = ctx.settings.project.as_ref().map_or("all projects", |project| project.value.as_str());
        let how = if self.uses_stream { "live".to_owned() } else { format!("every {:?}", self.interval) };
        let newest =
            self.seen.newest().map(|time| format!(", newest {}", clock(ctx, time))).unwrap_or_default();
        ctx.out.note(&format!("following {what}, {how}{newest} (Ctrl-C to stop)"));
    }

    /// Waits after a temporary failure; returns other failures as errors.
    async fn wait_after_failure(&mut self, ctx: &mut Ctx, error: Error) -> Result {
        // If the server was never reached, the address is probably wrong, so the command ends.
        if !is_temporary(&error) || !self.is_announced {
            let mut failed = CliError::from(error);
            if let Some(newest) = self.seen.newest().filter(|_| self.is_announced) {
                failed.detail.push(format!("the newest trace printed started at {newest}"));
            }
            return Err(failed);
        }
        let (wait, message) = self.outages.record(&error);
        ctx.out.note(&message);
        sleep(wait).await;
        Ok(())
    }

    /// Prints that the server is reachable again.
    fn note_recovery(&mut self, ctx: &mut Ctx) {
        if let Some(seconds) = self.outages.end() {
            let from = clock(ctx, self.seen.resume());
            ctx.out.note(&format!("connected again after {seconds}s, continuing from {from}"));
        }
    }
}

fn clock(ctx: &Ctx, time: Timestamp) -> String {
    format::clock(ctx.out.style.zone(), time, now().to_utc().into())
}
