//! Exports: all traces that match the list's filters, as lines, without a size limit.
//!
//! A task reads page after page and passes chunks to the response body through a channel of capacity
//! two, so that it reads no faster than the client and its memory is independent of the size of the
//! export. An error truncates the body: a partial export must not look complete. [`jsonl`] reads and
//! writes the individual traces.

mod jsonl;
mod otlp;
mod reader;

use std::{collections::VecDeque, sync::Arc};

use api::{ErrorCode, trace_filter::TraceConditions};
use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use entities::trace;
use futures::{Stream, StreamExt, stream};
use store::{
    DbError, StoreError,
    health::Unavailable,
    traces::{Page, Texts},
};
use tokio::sync::mpsc;
use uuid::Uuid;

use self::reader::ExportFormat;
use crate::{
    access::{Access, Caller, Keys},
    app::{App, MAX_EXPORTS},
    error::{Error, Result, problem},
    http::{
        body_memory::BodyMemory,
        chunked_json::ChunkedJson,
        query::{Query, invalid},
        read_size::ROWS_PER_READ,
        route::{Route, route},
        token_recheck::TokenRecheck,
        trace_filter,
    },
    memory::{MEMORY_WAIT, MemoryHolder, Reservation},
};

/// Number of traces read at once.
const TRACES_PER_READ: usize = 50;
/// Number of chunks that wait for the client.
const CHANNEL_CAPACITY: usize = 2;
/// Approximate size of a chunk in bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// Maximum number of exports of a tenant that wait for another to end.
const MAX_WAITING_EXPORTS: usize = 16;
/// Bytes counted for the chunks between the task and the connection.
const EXPORT_IN_FLIGHT_BYTES: usize = 512 * 1024;

/// Returns the route of exports.
pub fn routes() -> Vec<Route> {
    vec![
        route!(export, Access::viewer().keys(Keys::Query))
            .acquires_permits()
            .errors(&[ErrorCode::TagsFilterIncomplete]),
    ]
}

/// Export traces with their spans and events, newest first.
///
/// Accepts the filters of the list. `jsonl`: one trace per line, in the shape of the trace detail, with
/// all spans. `otlp`: one OTLP request per line, to be sent to `/v1/otlp/traces`; a very long trace
/// takes several lines. Concurrent changes may or may not be included. A truncated response is not
/// complete.
#[utoipa::path(get, path = "/v1/traces/export", tag = "Traces", params(
    ("format" = Option<String>, Query, description = "jsonl (the default) or otlp")),
    responses((status = 200, description = "lines of JSON", content_type = "application/x-ndjson")))]
pub async fn export(
    State(app): State<Arc<App>>,
    caller: Caller,
    token: TokenRecheck,
    query: Query,
) -> Result<Response> {
    let filter = trace_filter::conditions(&query)?;
    let format = match query.get("format") {
        None | Some("jsonl") => ExportFormat::Jsonl,
        Some("otlp") => ExportFormat::Otlp,
        Some(_) => return Err(invalid("format", "must be jsonl or otlp")),
    };
    let tenant = caller.tenant_id;
    // Checked before the response begins, so that an unreachable database gives an error response. The
    // export of a disconnected client ends a moment later, so a new one waits for a while.
    let Some(permit) = app.exports.acquire(&tenant, MAX_WAITING_EXPORTS, MEMORY_WAIT).await else {
        return Err(problem(
            ErrorCode::Overloaded,
            format!("{MAX_EXPORTS} exports of this tenant are running already; try again when one has ended"),
        ));
    };
    let mut memory = app.workspace(tenant).await?;
    let mut in_flight = app.memory.reservation(MemoryHolder::Tenant(tenant));
    in_flight.grow(EXPORT_IN_FLIGHT_BYTES, MEMORY_WAIT).await?;
    let first = {
        let _permit = app.read_permit(tenant).await?;
        store::traces::page(&app.db, tenant, &filter, None, TRACES_PER_READ, &mut memory).await?
    };
    let disposition =
        format!("attachment; filename=\"traces-{}.{}\"", file_timestamp(app.clock.now()), format.suffix());
    let (sender, receiver) = mpsc::channel(CHANNEL_CAPACITY);
    let export = Export {
        tenant,
        token,
        filter,
        format,
        writer: ExportWriter { app: Arc::clone(&app), memory, sender, buffer: Vec::new() },
    };
    app.spawn(async move {
        export.run(first).await;
        drop(permit);
    });
    let mut response = Body::from_stream(body(receiver)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    headers.insert(
        header::CONTENT_DISPOSITION,
        HeaderValue::from_str(&disposition).map_err(anyhow::Error::from)?,
    );
    response.extensions_mut().insert(BodyMemory::new(in_flight));
    Ok(response)
}

/// A message of the task: a chunk, or `None` as the end mark.
type ExportMessage = Option<Bytes>;

/// Returns the chunks up to the end mark. If the task ends without the mark, for whatever reason, the
/// stream ends with an error.
fn body(receiver: mpsc::Receiver<ExportMessage>) -> impl Stream<Item = Result<Bytes, ExportInterrupted>> {
    let chunks = stream::unfold(Some(receiver), |receiver| async {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Some(chunk)) => Some((Ok(chunk), Some(receiver))),
            Some(None) => None,
            None => Some((Err(ExportInterrupted), None)),
        }
    });
    // The compression layer polls again after the end.
    chunks.fuse()
}

/// The error that ends a partial export.
#[derive(Debug, thiserror::Error)]
#[error("the export was interrupted")]
struct ExportInterrupted;

/// The reason why an export ends early.
#[derive(Debug, thiserror::Error)]
enum ExportError {
    /// The client has disconnected.
    #[error("the client has disconnected")]
    ClientDisconnected,
    /// The caller's token is no longer valid.
    #[error("the token was revoked or has expired")]
    InvalidToken,
    /// The server is stopping.
    #[error("the server is stopping")]
    Stopping,
    /// The database became unreachable.
    #[error(transparent)]
    Unavailable(Unavailable),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbError),
    /// A read failed, or there was no memory for the result.
    #[error(transparent)]
    Read(#[from] Error),
    /// A trace could not be serialized.
    #[error(transparent)]
    Serialize(#[from] serde_json::Error),
}

impl From<StoreError> for ExportError {
    fn from(error: StoreError) -> Self {
        Self::Read(error.into())
    }
}

struct Export {
    tenant: Uuid,
    token: TokenRecheck,
    filter: TraceConditions,
    format: ExportFormat,
    writer: ExportWriter,
}

impl Export {
    async fn run(mut self, first: Page) {
        let health = self.writer.app.db.health.clone();
        // A read on a broken connection would wait for a quarter of an hour.
        let written = health.while_reachable(Box::pin(self.write(first))).await;
        match written.unwrap_or_else(|reason| Err(ExportError::Unavailable(reason))) {
            Ok(()) | Err(ExportError::ClientDisconnected) => {}
            Err(error) => {
                tracing::warn!(%error, "an export was interrupted");
            }
        }
    }

    async fn write(&mut self, mut page: Page) -> Result<(), ExportError> {
        loop {
            let mut rows: VecDeque<(trace::Model, Texts)> = page.rows.into();
            while !rows.is_empty() {
                let batch = take_batch(&mut rows);
                reader::write(&mut self.writer, self.tenant, self.format, batch).await?;
            }
            if page.next.is_none() {
                self.writer.flush().await?;
                return self.writer.send(None).await;
            }
            let app = Arc::clone(&self.writer.app);
            if !self.token.is_valid(&app).await {
                return Err(ExportError::InvalidToken);
            }
            // The previous page is dropped.
            self.writer.memory.shrink_to(app.workspace_bytes());
            let _permit = app.read_permit(self.tenant).await?;
            let memory = &mut self.writer.memory;
            page =
                store::traces::page(&app.db, self.tenant, &self.filter, page.next, TRACES_PER_READ, memory)
                    .await?;
        }
    }
}

/// Removes the traces to read next: one, or several with few spans.
fn take_batch(rows: &mut VecDeque<(trace::Model, Texts)>) -> Vec<(trace::Model, Texts)> {
    let (mut taken, mut spans) = (Vec::new(), 0);
    while let Some((row, _)) = rows.front() {
        spans += row.span_count.max(1);
        if spans > i32::from(ROWS_PER_READ) && !taken.is_empty() {
            break;
        }
        taken.extend(rows.pop_front());
    }
    taken
}

/// The response body, written in chunks.
struct ExportWriter {
    app: Arc<App>,
    /// The memory of the texts that the task holds.
    memory: Reservation,
    sender: mpsc::Sender<ExportMessage>,
    buffer: Vec<u8>,
}

impl ExportWriter {
    /// Appends text to the body. Waits while the client is slow.
    async fn push(&mut self, text: &str) -> Result<(), ExportError> {
        for part in text.as_bytes().chunks(CHUNK_BYTES) {
            self.buffer.extend_from_slice(part);
            if self.buffer.len() >= CHUNK_BYTES {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Appends JSON, large texts in chunks.
    async fn write(&mut self, mut json: ChunkedJson) -> Result<(), ExportError> {
        while let Some(chunk) = json.next_chunk() {
            self.buffer.extend_from_slice(&chunk);
            if self.buffer.len() >= CHUNK_BYTES {
                self.flush().await?;
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), ExportError> {
        let chunk = Bytes::from(std::mem::take(&mut self.buffer));
        if chunk.is_empty() { Ok(()) } else { self.send(Some(chunk)).await }
    }

    async fn send(&self, sent: ExportMessage) -> Result<(), ExportError> {
        let stopping = self.app.stopping();
        tokio::select! {
            biased;
            () = stopping.cancelled() => Err(ExportError::Stopping),
            sent = self.sender.send(sent) => sent.map_err(|_| ExportError::ClientDisconnected),
        }
    }
}

/// Formats a time for a file name.
fn file_timestamp(micros: i64) -> String {
    let text = api::Timestamp::from_micros(micros).to_string();
    text.chars().take(19).filter(|it| !matches!(it, '-' | ':')).collect()
}
