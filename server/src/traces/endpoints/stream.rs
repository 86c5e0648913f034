//! The stream of traces: server-sent events for traces that were stored or changed.
//!
//! The database is the source: each wake-up reads the changes after the last event. Commits of this process wake
//! the stream immediately, those of other processes are found by polling once a second. With several writers, a
//! change can become visible after a later one, so a short period before the last event is read again and changes
//! already sent are skipped. No queue is kept per subscriber: texts are read when its connection has room. A
//! subscriber that does not read gets a `lagged` event with the cursor to resume from, and the stream ends.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use api::{ErrorCode, trace_filter::TraceConditions};
use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use entities::trace;
use futures::stream;
use store::traces::{Changes, TextBlocks, changed_since, holds};
use tokio::{sync::broadcast, time::Instant};
use uuid::Uuid;

use crate::{
    access::{Access, Caller, Keys},
    app::{App, MAX_STREAMS},
    error::{Error, Result, problem, stopping},
    http::{
        body_memory,
        chunked_json::ChunkedJson,
        query::Query,
        route::{Route, route},
        token_recheck::TokenRecheck,
        trace_filter,
    },
    keyed_semaphore::KeyedPermit,
    memory::{MEMORY_WAIT, MemoryHolder, Reservation},
    traces::view,
};

/// Delay in seconds after which a rejected client may try again.
const RETRY_SECONDS: u64 = 10;
/// Number of changes read at once.
const CHANGES_PER_READ: usize = 50;
/// Bytes of rows that a stream keeps until they are sent.
const MAX_ROW_BYTES: usize = 128 * 1024;
/// Size of a batch of events in bytes.
const CHUNK_BYTES: usize = 32 * 1024;
/// Length in microseconds of the period before the last event that is read again: longer than a commit
/// takes.
const OVERLAP_MICROS: i64 = 3_000_000;
/// Number of sent changes that a stream remembers.
const MAX_REMEMBERED_CHANGES: usize = 4_096;
/// Interval of polling for commits of other processes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// A read that takes longer than this has lost its connection to the database; it is repeated.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Time without events after which the stream sends a comment.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Time without reads after which a subscriber has fallen behind.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the route of the stream.
pub fn routes() -> Vec<Route> {
    vec![
        route!(follow, Access::viewer().keys(Keys::Query))
            .acquires_permits()
            .errors(&[ErrorCode::InvalidCursor, ErrorCode::TagsFilterIncomplete]),
    ]
}

/// Stream traces as they are stored or changed.
///
/// Server-sent events named `trace`, each with a trace as in the list. `Last-Event-ID` resumes: a trace may be
/// repeated, none is skipped. Accepts the filters of the list. The stream ends when its token is revoked or
/// expires. A client that falls behind gets an event `lagged` with `{"cursor": "…"}`, and the stream ends: send
/// the cursor as `Last-Event-ID` to continue. A tenant may have 50 open streams; further ones get 429 with
/// `Retry-After`.
#[utoipa::path(get, path = "/v1/traces/stream", tag = "Traces", params(
    ("Last-Event-ID" = Option<String>, Header, description = "id of the last event received"),
    ("preview" = Option<bool>, Query, description = "truncate texts to 2,048 characters")),
    responses((status = 200, description = "events", content_type = "text/event-stream")))]
pub async fn follow(
    State(app): State<Arc<App>>,
    caller: Caller,
    token: TokenRecheck,
    headers: HeaderMap,
    query: Query,
) -> Result<Response> {
    let filter = trace_filter::conditions(&query)?;
    let preview = query.boolean("preview")?.unwrap_or(false);
    let tenant = caller.tenant_id;
    let last = headers.get("last-event-id").and_then(|it| it.to_str().ok()).filter(|it| !it.is_empty());
    let resume = match last {
        Some(id) => app.cursors.verify::<(i64, Uuid)>(tenant, CURSOR_SCOPE, id)?,
        None => (app.clock.now(), Uuid::nil()),
    };
    let Some(permit) = app.streams.try_acquire(&tenant) else { return Ok(too_many_streams()) };
    let subscriber = StreamSubscriber {
        commits: app.changed_tenants.subscribe(),
        position: (resume.0.saturating_sub(OVERLAP_MICROS), Uuid::nil()),
        overlap_from: i64::MIN,
        resume,
        output_to: resume,
        seen_changes: HashMap::new(),
        rows: VecDeque::new(),
        output: ChunkedJson::default(),
        memory: app.memory.reservation(MemoryHolder::Tenant(tenant)),
        last_output: Instant::now(),
        is_lagging: false,
        has_ended: false,
        tenant,
        token,
        filter,
        preview,
        app,
        _permit: permit,
    };
    let events = stream::unfold(subscriber, |mut subscriber| async move {
        let chunk = subscriber.next().await?;
        Some((Ok::<_, Infallible>(chunk), subscriber))
    });
    let mut response = Body::from_stream(events).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

fn too_many_streams() -> Response {
    let message = format!(
        "{MAX_STREAMS} streams of this tenant are open already; close one, or try again in {RETRY_SECONDS} s"
    );
    let mut response = problem(ErrorCode::RateLimited, message).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
    response
}

/// The scope of the cursors in event IDs.
const CURSOR_SCOPE: &str = "stream";
/// A comment, which clients ignore.
const KEEP_ALIVE: &[u8] = b":\n\n";

/// The result of reading the next events of a subscriber.
enum ReadAhead {
    /// New events were read into [`StreamSubscriber::output`].
    Events,
    /// Nothing has changed.
    NoChange,
    /// The database did not answer.
    Unavailable,
    /// The token of the stream is no longer valid.
    InvalidToken,
}

struct StreamSubscriber {
    app: Arc<App>,
    tenant: Uuid,
    token: TokenRecheck,
    filter: TraceConditions,
    preview: bool,
    commits: broadcast::Receiver<Uuid>,
    /// The last change read.
    position: (i64, Uuid),
    /// Changes before this time are not read again.
    overlap_from: i64,
    /// The last change whose event was delivered; a subscriber that falls behind resumes after it.
    resume: (i64, Uuid),
    /// The last change in `output`, or the one before.
    output_to: (i64, Uuid),
    /// Changes read within the overlap, sent or not matching: trace and time of change.
    seen_changes: HashMap<Uuid, i64>,
    /// Changes still to be sent.
    rows: VecDeque<trace::Model>,
    /// Events in flight.
    output: ChunkedJson,
    /// Counts the memory of `output`.
    memory: Reservation,
    /// Time at which the connection last read something.
    last_output: Instant,
    /// Whether the subscriber has fallen behind; then nothing follows the open events.
    is_lagging: bool,
    has_ended: bool,
    _permit: KeyedPermit<Uuid>,
}

impl StreamSubscriber {
    /// Returns the next bytes; `None` when the server stops, the token is no longer valid, or the
    /// subscriber has fallen behind.
    async fn next(&mut self) -> Option<Bytes> {
        if self.has_ended {
            return None;
        }
        // The connection polls again as soon as its buffer has room.
        if self.last_output.elapsed() >= STALL_TIMEOUT && (self.output.len() > 0 || !self.rows.is_empty()) {
            self.is_lagging = true;
        }
        let bytes = self.wait_for_bytes().await;
        self.last_output = Instant::now();
        bytes
    }

    async fn wait_for_bytes(&mut self) -> Option<Bytes> {
        loop {
            if let Some(chunk) = self.output.next_chunk() {
                let mut memory = self.app.memory.reservation(MemoryHolder::Tenant(self.tenant));
                return match memory.grow(chunk.len(), MEMORY_WAIT).await {
                    Ok(()) => Some(body_memory::counted_bytes(chunk, memory)),
                    // The event is truncated, and is sent again when the client resumes.
                    Err(_) => None,
                };
            }
            self.resume = self.output_to;
            self.memory.shrink_to(0);
            if self.is_lagging {
                return Some(self.lagged_event());
            }
            if self.app.is_stopping() {
                return None;
            }
            let is_comment_due = match self.read_ahead().await {
                Ok(ReadAhead::Events) => false,
                Ok(ReadAhead::NoChange) => self.wait().await,
                Ok(ReadAhead::Unavailable) => self.pause().await,
                Ok(ReadAhead::InvalidToken) => return None,
                // There is no memory for the texts of the next event.
                Err(error) if error.is_temporary() && !self.rows.is_empty() => {
                    return Some(self.lagged_event());
                }
                Err(error) => {
                    tracing::warn!(%error, "reading the stream's changes failed; trying again");
                    self.pause().await
                }
            };
            if is_comment_due {
                return Some(Bytes::from_static(KEEP_ALIVE));
            }
        }
    }

    /// Builds the next batch of events. A read that the database does not answer is dropped and repeated
    /// later; whole events and rows that it left behind are used.
    async fn read_ahead(&mut self) -> Result<ReadAhead> {
        let app = Arc::clone(&self.app);
        let read = async {
            if !self.token.is_valid(&app).await {
                return Ok(ReadAhead::InvalidToken);
            }
            Ok(if self.fill_output().await? { ReadAhead::Events } else { ReadAhead::NoChange })
        };
        match tokio::time::timeout(READ_TIMEOUT, app.db.health.while_reachable(read)).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => Ok(ReadAhead::Unavailable),
        }
    }

    /// Builds the event that tells a subscriber where to resume. The stream ends with it.
    fn lagged_event(&mut self) -> Bytes {
        self.has_ended = true;
        let cursor = self.app.cursors.sign(self.tenant, CURSOR_SCOPE, self.resume);
        // A cursor contains no characters that JSON escapes.
        format!("event: lagged\nid: {cursor}\ndata: {{\"cursor\":\"{cursor}\"}}\n\n").into()
    }

    /// Builds a batch of events; returns false when nothing has changed.
    async fn fill_output(&mut self) -> Result<bool> {
        let app = Arc::clone(&self.app);
        let _permit =
            app.stream_reads.acquire(&self.tenant, MAX_STREAMS, Duration::MAX).await.ok_or_else(stopping)?;
        if self.rows.is_empty() {
            self.read_rows().await?;
        }
        if self.rows.is_empty() {
            self.output_to = self.output_to.max(self.position);
            return Ok(false);
        }
        let texts = TextBlocks::of_traces(&app.db, self.tenant, self.rows.make_contiguous()).await?;
        while self.output.len() < CHUNK_BYTES
            && let Some(row) = self.rows.front()
        {
            let change = (row.updated_at, row.id);
            let counted = texts.of_trace(&app.db, row, &mut self.memory).await?;
            if let Some(row) = self.rows.pop_front()
                && holds(&row, &counted.texts, &self.filter.words)
            {
                let id = app.cursors.sign(self.tenant, CURSOR_SCOPE, change);
                let event = ChunkedJson::from_value(view::trace(row, counted.texts, self.preview));
                let event = event.map_err(anyhow::Error::from)?;
                self.output.push_json(format!("event: trace\nid: {id}\ndata: ").as_bytes());
                self.output.append(event);
                self.output.push_json(b"\n\n");
            }
            // The event in `output` is sent even if there is no memory for more.
            self.output_to = change;
            self.memory.shrink(counted.reserved);
            self.memory.grow(self.output.memory().saturating_sub(self.memory.bytes()), MEMORY_WAIT).await?;
        }
        Ok(true)
    }

    /// Reads the next changes.
    async fn read_rows(&mut self) -> Result<(), Error> {
        // A single writer commits in order, so no change appears before the last event's time.
        let overlap = if self.app.db.commits_in_order() { 0 } else { OVERLAP_MICROS };
        let from = self.position.0.saturating_sub(overlap).max(self.overlap_from);
        let mut after = (from, Uuid::nil());
        let mut bytes = 0;
        loop {
            let Changes { rows, last, more } =
                changed_since(&self.app.db, self.tenant, &self.filter, after, CHANGES_PER_READ).await?;
            let Some(last) = last else { break };
            after = last;
            let mut has_room = true;
            for row in rows {
                let change = (row.updated_at, row.id);
                if self.seen_changes.get(&row.id) != Some(&row.updated_at) {
                    bytes += row_bytes(&row);
                    has_room = self.rows.is_empty() || bytes <= MAX_ROW_BYTES;
                    if !has_room {
                        break;
                    }
                    self.seen_changes.insert(row.id, row.updated_at);
                    self.rows.push_back(row);
                }
                self.position = self.position.max(change);
            }
            if !more || !has_room || !self.rows.is_empty() {
                break;
            }
        }
        let horizon = self.position.0.saturating_sub(2 * OVERLAP_MICROS);
        self.seen_changes.retain(|_, at| *at >= horizon);
        if self.seen_changes.len() > MAX_REMEMBERED_CHANGES {
            // This many changes came within seconds, so a shorter period is read again.
            let mut times: Vec<i64> = self.seen_changes.values().copied().collect();
            times.sort_unstable();
            self.overlap_from = times[times.len() - MAX_REMEMBERED_CHANGES / 2];
            self.seen_changes.retain(|_, at| *at >= self.overlap_from);
        }
        Ok(())
    }

    /// Waits before the next attempt to read. Returns true when a comment is due.
    async fn pause(&self) -> bool {
        self.app.pause(POLL_INTERVAL).await;
        Instant::now() >= self.last_output + KEEP_ALIVE_INTERVAL
    }

    /// Waits for a commit of this tenant, or long enough for a commit of another process. Returns true when
    /// a comment is due.
    async fn wait(&mut self) -> bool {
        let stopping = self.app.stopping();
        let comment_at = self.last_output + KEEP_ALIVE_INTERVAL;
        let commit = async {
            loop {
                match self.commits.recv().await {
                    Ok(tenant) if tenant != self.tenant => {}
                    // The channel lagged: a commit of this tenant may have been missed.
                    Ok(_) | Err(_) => return,
                }
            }
        };
        tokio::select! {
            () = commit => {}
            () = tokio::time::sleep_until(comment_at.min(Instant::now() + POLL_INTERVAL)) => {}
            () = stopping.cancelled() => {}
        }
        Instant::now() >= comment_at
    }
}

/// Returns the size of a row's own texts in bytes.
fn row_bytes(row: &trace::Model) -> usize {
    let texts = [&row.name, &row.error, &row.tags, &row.given];
    size_of::<trace::Model>() + texts.into_iter().flatten().map(String::len).sum::<usize>()
}
