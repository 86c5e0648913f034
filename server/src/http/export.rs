//! Exports: everything that the list's filters select, as lines, for as long as it takes.
//!
//! A task reads page after page and hands pieces to the answer's body through a channel of two,
//! so that no more is read than the caller takes, and what is held does not grow with what is
//! exported. A failure in the middle breaks the body off: half an export must not look like a
//! whole one. What is read and written for a trace is in [`lines`].

mod jsonl;
mod lines;
mod otlp;

use std::{collections::VecDeque, sync::Arc};

use api::ErrorCode;
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
    traces::{Filter, Page, Texts},
};
use tokio::sync::mpsc;
use uuid::Uuid;

use self::lines::Format;
use super::{
    held::BodyMemory,
    pieces::Pieces as JsonPieces,
    query::{Query, invalid},
    read_size::ROWS_PER_READ,
    standing::Standing,
    traces,
};
use crate::{
    access::Caller,
    app::{App, MAX_EXPORTS},
    error::{Error, Result, problem},
    memory::{Holder, MEMORY_WAIT, Reservation},
};

/// Traces that are read at once.
const PAGE: usize = 50;
/// Pieces that wait for the caller.
const AHEAD: usize = 2;
/// Bytes of a piece, about.
const PIECE: usize = 64 * 1024;
/// Limits the exports of a tenant that wait for another to end.
const MAX_WAITING_EXPORTS: usize = 16;
/// Bytes counted for the chunks between the task and the connection.
const EXPORT_IN_FLIGHT_BYTES: usize = 512 * 1024;

/// Export traces with their spans and events, newest first.
///
/// Takes the filters of the list. `jsonl`: a line a trace, in the shape of the detail, with all
/// spans. `otlp`: a line an OTLP request, to be posted to `/v1/otlp/traces` as it is; a very
/// long trace takes several lines. What changes meanwhile may or may not be in it. A body that
/// breaks off is not complete.
#[utoipa::path(get, path = "/v1/traces/export", tag = "Traces", params(
    ("format" = Option<String>, Query, description = "jsonl (the default) or otlp")),
    responses((status = 200, description = "lines of JSON", content_type = "application/x-ndjson")))]
pub async fn export(
    State(app): State<Arc<App>>,
    caller: Caller,
    standing: Standing,
    query: Query,
) -> Result<Response> {
    let filter = traces::filter(&query)?;
    let format = match query.get("format") {
        None | Some("jsonl") => Format::Jsonl,
        Some("otlp") => Format::Otlp,
        Some(_) => return Err(invalid("format", "must be jsonl or otlp")),
    };
    let tenant = caller.tenant_id;
    // Before the answer begins, so that a database that is away is told as everywhere.
    // A disconnected client's export ends a moment later, so a new one waits for a while.
    let Some(permit) = app.exports.acquire(&tenant, MAX_WAITING_EXPORTS, MEMORY_WAIT).await else {
        return Err(problem(
            ErrorCode::Overloaded,
            format!("{MAX_EXPORTS} exports of this tenant are running already; try again when one has ended"),
        ));
    };
    let mut memory = app.workspace(tenant).await?;
    let mut in_flight = app.memory.reservation(Holder::Tenant(tenant));
    in_flight.grow(EXPORT_IN_FLIGHT_BYTES, MEMORY_WAIT).await?;
    let first = {
        let _permit = app.read_permit(tenant).await?;
        store::traces::page(&app.db, tenant, &filter, None, PAGE, &mut memory).await?
    };
    let disposition =
        format!("attachment; filename=\"traces-{}.{}\"", stamp(app.clock.now()), format.suffix());
    let (sender, receiver) = mpsc::channel(AHEAD);
    let export = Export {
        tenant,
        standing,
        filter,
        format,
        pieces: Pieces { app: Arc::clone(&app), memory, sender, open: Vec::new() },
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

/// What the task sends, up to the mark of its end: none in place of a piece.
type Sent = Option<Bytes>;

/// Everything up to the end. A task that goes without marking it, for whatever reason, leaves an
/// error.
fn body(receiver: mpsc::Receiver<Sent>) -> impl Stream<Item = Result<Bytes, BrokenOff>> {
    let pieces = stream::unfold(Some(receiver), |receiver| async {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Some(piece)) => Some((Ok(piece), Some(receiver))),
            Some(None) => None,
            None => Some((Err(BrokenOff), None)),
        }
    });
    // Whoever packs it asks again after its end.
    pieces.fuse()
}

/// In place of the end of half an export.
#[derive(Debug, thiserror::Error)]
#[error("the export was broken off")]
struct BrokenOff;

/// Why an export ends early.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    /// Nobody takes it any more.
    #[error("the caller is gone")]
    Gone,
    /// The caller's token is no longer good.
    #[error("the token was revoked or is over")]
    Unwelcome,
    /// The server goes down.
    #[error("the server is stopping")]
    Stopping,
    /// The database became unreachable.
    #[error(transparent)]
    Unavailable(Unavailable),
    /// It could not be read.
    #[error(transparent)]
    Failed(#[from] DbError),
    /// A read failed, or there was no memory for the result.
    #[error(transparent)]
    Unreadable(#[from] Error),
    /// It could not be written.
    #[error(transparent)]
    Unwritable(#[from] serde_json::Error),
}

impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Self {
        Self::Unreadable(error.into())
    }
}

struct Export {
    tenant: Uuid,
    standing: Standing,
    filter: Filter,
    format: Format,
    pieces: Pieces,
}

impl Export {
    async fn run(mut self, first: Page) {
        let health = self.pieces.app.db.health.clone();
        // A read on a broken connection would wait for a quarter of an hour.
        let written = health.while_reachable(Box::pin(self.write(first))).await;
        match written.unwrap_or_else(|reason| Err(Stopped::Unavailable(reason))) {
            Ok(()) | Err(Stopped::Gone) => {}
            Err(error) => {
                tracing::warn!(%error, "an export was broken off");
            }
        }
    }

    async fn write(&mut self, mut page: Page) -> Result<(), Stopped> {
        loop {
            let mut rows: VecDeque<(trace::Model, Texts)> = page.rows.into();
            while !rows.is_empty() {
                let together = together(&mut rows);
                lines::write(&mut self.pieces, self.tenant, self.format, together).await?;
            }
            if page.next.is_none() {
                self.pieces.flush().await?;
                return self.pieces.send(None).await;
            }
            let app = Arc::clone(&self.pieces.app);
            if !self.standing.holds(&app).await {
                return Err(Stopped::Unwelcome);
            }
            // The previous page is dropped.
            self.pieces.memory.shrink_to(app.workspace_bytes());
            let _permit = app.read_permit(self.tenant).await?;
            let memory = &mut self.pieces.memory;
            page = store::traces::page(&app.db, self.tenant, &self.filter, page.next, PAGE, memory).await?;
        }
    }
}

/// Takes the next traces that are read together: one, or as many as have few spans.
fn together(rows: &mut VecDeque<(trace::Model, Texts)>) -> Vec<(trace::Model, Texts)> {
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

/// The body of the answer, piece by piece.
struct Pieces {
    app: Arc<App>,
    /// Returns the number of bytes of texts that the task holds.
    memory: Reservation,
    sender: mpsc::Sender<Sent>,
    open: Vec<u8>,
}

impl Pieces {
    /// Adds to the body. Waits while the caller is slow.
    async fn push(&mut self, text: &str) -> Result<(), Stopped> {
        for part in text.as_bytes().chunks(PIECE) {
            self.open.extend_from_slice(part);
            if self.open.len() >= PIECE {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Adds JSON, large texts in chunks.
    async fn write(&mut self, mut json: JsonPieces) -> Result<(), Stopped> {
        while let Some(piece) = json.next_piece() {
            self.open.extend_from_slice(&piece);
            if self.open.len() >= PIECE {
                self.flush().await?;
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Stopped> {
        let piece = Bytes::from(std::mem::take(&mut self.open));
        if piece.is_empty() { Ok(()) } else { self.send(Some(piece)).await }
    }

    async fn send(&self, sent: Sent) -> Result<(), Stopped> {
        let stopping = self.app.stopping();
        tokio::select! {
            biased;
            () = stopping.cancelled() => Err(Stopped::Stopping),
            sent = self.sender.send(sent) => sent.map_err(|_| Stopped::Gone),
        }
    }
}

/// A time as it stands in a file's name.
fn stamp(micros: i64) -> String {
    let text = api::Timestamp::from_micros(micros).to_string();
    text.chars().take(19).filter(|it| !matches!(it, '-' | ':')).collect()
}
