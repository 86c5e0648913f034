//! Group commit: all requests queued during a transaction are stored in the next one.
//!
//! Handlers submit finished rows and wait; a request gets its response only after the commit that
//! contains it. There is no timer, and no moment at which data is acknowledged but not saved. When the
//! queue is full, the client gets 503.

use std::{sync::Arc, time::Instant};

use api::ErrorCode;
use store::{
    Db, lost_a_race,
    quotas::own_slot,
    traces::{Allowance, ChunkOutcome, TraceChunk, TraceRules, store},
};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::options::IngestOptions;
use crate::{
    clock::Clock,
    error::{Error, Result, problem, stopping},
    memory::Reservation,
    telemetry::{Telemetry, ingest::count},
};

/// Maximum number of requests that wait for a commit.
const MAX_WAITING_REQUESTS: usize = 256;
/// Maximum number of requests in one transaction.
const MAX_GROUP_REQUESTS: usize = 64;
/// Number of spans after which a transaction takes no further request.
const MAX_GROUP_SPANS: usize = 4_000;
/// Compressed bytes after which a transaction takes no further request.
const MAX_GROUP_BYTES: usize = 16 * 1024 * 1024;
/// Number of spans that a vector counts as: it is a row of 3 KiB, with an index entry.
const VECTOR_SPAN_EQUIVALENTS: usize = 16;
/// Maximum number of attempts of a transaction that conflicts with another.
const MAX_ATTEMPTS: u32 = 3;

/// The chunks of one request.
struct Submission {
    chunks: Vec<TraceChunk>,
    options: IngestOptions,
    /// Counts the memory of the chunks until they are committed, even after the client disconnects.
    memory: Option<Reservation>,
    reply: oneshot::Sender<Result<Vec<(TraceChunk, ChunkOutcome)>>>,
}

/// Submits chunks to the writers.
#[derive(Clone, Debug)]
pub struct Writer {
    queue: mpsc::Sender<Submission>,
}

impl Writer {
    /// Creates a writer and the queue that [`WriterQueue::run`] processes.
    pub fn new() -> (Self, WriterQueue) {
        let (queue, receiver) = mpsc::channel(MAX_WAITING_REQUESTS);
        (Self { queue }, WriterQueue(Arc::new(tokio::sync::Mutex::new(receiver))))
    }

    /// Returns the number of requests that wait for a commit.
    pub fn waiting(&self) -> usize {
        MAX_WAITING_REQUESTS - self.queue.capacity()
    }

    /// Stores the chunks of one request, all or none except traces beyond the monthly quota, and
    /// returns the result of each. `memory` counts them until then.
    ///
    /// # Errors
    ///
    /// Fails with `overloaded` when the queue is full or the server is stopping; internal when the
    /// database fails.
    pub async fn store(
        &self,
        chunks: Vec<TraceChunk>,
        options: IngestOptions,
        memory: Option<Reservation>,
    ) -> Result<Vec<(TraceChunk, ChunkOutcome)>> {
        if chunks.is_empty() {
            return Ok(Vec::new());
        }
        let (reply, stored) = oneshot::channel();
        self.queue.try_send(Submission { chunks, options, memory, reply }).map_err(|_| {
            problem(ErrorCode::Overloaded, "too many ingest requests are waiting; try again shortly")
        })?;
        stored.await.map_err(|_| stopping())?
    }
}

/// The receiving end, shared by the writers of a process.
#[derive(Clone, Debug)]
pub struct WriterQueue(Arc<tokio::sync::Mutex<mpsc::Receiver<Submission>>>);

impl WriterQueue {
    /// Stores requests until `stopping`, and then until the queue is empty. `changed` announces the
    /// tenants with new or changed traces.
    pub async fn run(
        self,
        db: Db,
        clock: Arc<dyn Clock>,
        changed: broadcast::Sender<Uuid>,
        telemetry: Arc<Telemetry>,
        rules: Arc<dyn TraceRules>,
        stopping: CancellationToken,
    ) {
        let storage = Storage { db: &db, rules: rules.as_ref(), clock: clock.as_ref() };
        // Any shard will do: writers that share one only wait for each other.
        let slot = own_slot();
        while let Some(group) = self.next_group(&stopping).await {
            commit(storage, &changed, &telemetry, group, slot).await;
        }
    }

    /// Waits for a request and takes all others that are queued.
    async fn next_group(&self, stopping: &CancellationToken) -> Option<Vec<Submission>> {
        let mut queue = self.0.lock().await;
        let first = tokio::select! {
            biased;
            first = queue.recv() => first,
            () = stopping.cancelled() => {
                // Later requests get an error that the server is stopping.
                queue.close();
                queue.recv().await
            }
        };
        let mut group = vec![first?];
        let (mut spans, mut bytes) = size(&group[0]);
        while group.len() < MAX_GROUP_REQUESTS && spans < MAX_GROUP_SPANS && bytes < MAX_GROUP_BYTES {
            let Ok(next) = queue.try_recv() else { break };
            let more = size(&next);
            (spans, bytes) = (spans + more.0, bytes + more.1);
            group.push(next);
        }
        Some(group)
    }
}

/// Returns the number of spans of a request, including their equivalents, and its compressed bytes.
fn size(submission: &Submission) -> (usize, usize) {
    let chunks = &submission.chunks;
    let texts = chunks.iter().flat_map(|it| &it.bodies).map(|it| it.data.len());
    let bytes = texts.chain(chunks.iter().flat_map(|it| &it.held).map(|it| it.data.len())).sum();
    (chunks.iter().map(|it| it.spans.len() + 1 + VECTOR_SPAN_EQUIVALENTS * it.vectors.len()).sum(), bytes)
}

/// The database, the trace rules and the clock of a transaction.
#[derive(Clone, Copy)]
struct Storage<'a> {
    db: &'a Db,
    rules: &'a dyn TraceRules,
    clock: &'a dyn Clock,
}

async fn commit(
    storage: Storage<'_>,
    changed: &broadcast::Sender<Uuid>,
    telemetry: &Telemetry,
    group: Vec<Submission>,
    slot: i16,
) {
    let began = Instant::now();
    let sizes: Vec<usize> = group.iter().map(|it| it.chunks.len()).collect();
    let mut replies = Vec::with_capacity(group.len());
    let mut chunks = Vec::with_capacity(sizes.iter().sum());
    let mut allowance = Allowance { slot, ..Allowance::default() };
    let mut reservations = Vec::new();
    for mut submission in group {
        reservations.extend(submission.memory.take());
        if let Some(chunk) = submission.chunks.first() {
            let (tenant, options) = (chunk.trace.tenant_id, submission.options);
            allowance.limits.extend(options.monthly_limit.map(|it| (tenant, it)));
            allowance.embedding.extend(options.embeds_spans.then_some(tenant));
        }
        chunks.extend(submission.chunks);
        replies.push(submission.reply);
    }
    let result = attempt(storage, &mut chunks, &allowance).await;
    telemetry.ingest.count_commit(replies.len(), began.elapsed(), result.is_ok());
    match result {
        Ok(outcomes) => {
            announce(changed, &chunks, &outcomes);
            count_outcomes(telemetry, &chunks, &outcomes);
            let mut stored = chunks.into_iter().zip(outcomes);
            for (reply, size) in replies.into_iter().zip(sizes) {
                // A client that disconnected does not receive the result, but its data is stored.
                _ = reply.send(Ok(stored.by_ref().take(size).collect()));
            }
        }
        Err(error) if replies.len() == 1 => {
            if let Some(reply) = replies.pop() {
                _ = reply.send(Err(error));
            }
        }
        // The database is unreachable: trying the requests one by one would only wait for each.
        Err(Error::Problem(overloaded)) if overloaded.code == ErrorCode::Overloaded => {
            for reply in replies {
                _ = reply.send(Err(Error::Problem(overloaded.clone())));
            }
        }
        // A failing request must not affect the others: each is tried alone.
        Err(error) => {
            tracing::warn!(%error, requests = replies.len(), "a group commit failed; its requests are committed one by one");
            let mut chunks = chunks.into_iter();
            for (reply, size) in replies.into_iter().zip(sizes) {
                let mut own_chunks: Vec<TraceChunk> = chunks.by_ref().take(size).collect();
                let result = attempt(storage, &mut own_chunks, &allowance).await;
                if let Ok(outcomes) = &result {
                    announce(changed, &own_chunks, outcomes);
                    count_outcomes(telemetry, &own_chunks, outcomes);
                }
                _ = reply.send(result.map(|it| own_chunks.into_iter().zip(it).collect()));
            }
        }
    }
}

/// Executes one transaction, with retries after conflicts.
async fn attempt(
    storage: Storage<'_>,
    chunks: &mut [TraceChunk],
    allowance: &Allowance,
) -> Result<Vec<ChunkOutcome>> {
    let Storage { db, rules, clock } = storage;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let stored = db.health.while_reachable(store(db, chunks, allowance, rules, clock.now()));
        match stored.await.unwrap_or_else(|it| Err(it.into())) {
            Ok(outcomes) => return Ok(outcomes),
            Err(error) if attempts < MAX_ATTEMPTS && lost_a_race(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn announce(changed: &broadcast::Sender<Uuid>, chunks: &[TraceChunk], outcomes: &[ChunkOutcome]) {
    let mut last = None;
    for (chunk, outcome) in chunks.iter().zip(outcomes) {
        let tenant = chunk.trace.tenant_id;
        if matches!(outcome, ChunkOutcome::New | ChunkOutcome::Merged) && last != Some(tenant) {
            // There may be no subscribers.
            _ = changed.send(tenant);
            last = Some(tenant);
        }
    }
}

fn count_outcomes(telemetry: &Telemetry, chunks: &[TraceChunk], outcomes: &[ChunkOutcome]) {
    let metrics = &telemetry.ingest;
    let mut spans = 0;
    for (chunk, outcome) in chunks.iter().zip(outcomes) {
        let traces = match outcome {
            ChunkOutcome::New => &metrics.new,
            ChunkOutcome::Merged => &metrics.merged,
            ChunkOutcome::Duplicate { .. } => {
                metrics.duplicate.inc();
                continue;
            }
            ChunkOutcome::Refused => {
                metrics.count_rejected(ErrorCode::IngestQuotaExceeded.as_str(), 1);
                continue;
            }
        };
        traces.inc();
        spans += chunk.spans.len();
    }
    metrics.spans.inc_by(count(spans));
}
