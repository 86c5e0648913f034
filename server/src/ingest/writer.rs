//! The group commit: whatever has queued while the last transaction ran becomes the next one.
//!
//! Handlers hand finished rows over and wait; a request is answered only after the commit
//! that holds it. There is no timer and no window in which something is acknowledged but not
//! saved. When the queue is full the caller is told to come back.

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

use super::terms::Terms;
use crate::{
    clock::Clock,
    error::{Error, Result, problem, stopping},
    memory::Reservation,
    telemetry::{Telemetry, ingest::count},
};

/// Requests that may wait for a commit.
const QUEUE: usize = 256;
/// Requests in one transaction at most.
const GROUP: usize = 64;
/// Spans after which a transaction takes no further request.
const GROUP_SPANS: usize = 4_000;
/// Packed bytes after which a transaction takes no further request.
const GROUP_BYTES: usize = 16 * 1024 * 1024;
/// As how many spans a vector counts: a row of 3 KiB, and its place in an index.
const VECTOR: usize = 16;
/// Tries of a transaction that lost against another one.
const TRIES: u32 = 3;

/// What one request wants stored.
struct Submission {
    parts: Vec<TraceChunk>,
    terms: Terms,
    /// Counts the memory of the parts until they are committed, even after the client disconnects.
    memory: Option<Reservation>,
    answer: oneshot::Sender<Result<Vec<(TraceChunk, ChunkOutcome)>>>,
}

/// Hands parts to the writers.
#[derive(Clone, Debug)]
pub struct Writer {
    queue: mpsc::Sender<Submission>,
}

impl Writer {
    /// A writer and the queue that [`WriterQueue::run`] works off.
    pub fn new() -> (Self, WriterQueue) {
        let (queue, receiver) = mpsc::channel(QUEUE);
        (Self { queue }, WriterQueue(Arc::new(tokio::sync::Mutex::new(receiver))))
    }

    /// Requests that wait for a commit.
    pub fn waiting(&self) -> usize {
        QUEUE - self.queue.capacity()
    }

    /// Stores the parts of one request, all or none but for what is beyond the traces of a month, on
    /// these terms of their tenant, and answers what became of each. `memory` counts them until then.
    ///
    /// # Errors
    /// `overloaded` when the queue is full or the server is stopping; internal when the
    /// database fails.
    pub async fn store(
        &self,
        parts: Vec<TraceChunk>,
        terms: Terms,
        memory: Option<Reservation>,
    ) -> Result<Vec<(TraceChunk, ChunkOutcome)>> {
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let (answer, stored) = oneshot::channel();
        self.queue.try_send(Submission { parts, terms, memory, answer }).map_err(|_| {
            problem(ErrorCode::Overloaded, "more is being ingested than can be stored; try again shortly")
        })?;
        stored.await.map_err(|_| stopping())?
    }
}

/// The receiving end, shared by the writers of a process.
#[derive(Clone, Debug)]
pub struct WriterQueue(Arc<tokio::sync::Mutex<mpsc::Receiver<Submission>>>);

impl WriterQueue {
    /// Works until `stopping`, and then until the queue is empty. `changed` is told which
    /// tenants have new or changed traces.
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
        // Any of many will do: writers that share one wait for each other, no more.
        let slot = own_slot();
        while let Some(group) = self.next_group(&stopping).await {
            commit(storage, &changed, &telemetry, group, slot).await;
        }
    }

    /// Waits for a request and takes what else has queued.
    async fn next_group(&self, stopping: &CancellationToken) -> Option<Vec<Submission>> {
        let mut queue = self.0.lock().await;
        let first = tokio::select! {
            biased;
            first = queue.recv() => first,
            () = stopping.cancelled() => {
                // Who comes now is told that the server is stopping.
                queue.close();
                queue.recv().await
            }
        };
        let mut group = vec![first?];
        let (mut spans, mut bytes) = size(&group[0]);
        while group.len() < GROUP && spans < GROUP_SPANS && bytes < GROUP_BYTES {
            let Ok(next) = queue.try_recv() else { break };
            let more = size(&next);
            (spans, bytes) = (spans + more.0, bytes + more.1);
            group.push(next);
        }
        Some(group)
    }
}

/// Spans, with what counts as some, and packed bytes of a request.
fn size(submission: &Submission) -> (usize, usize) {
    let parts = &submission.parts;
    let bytes = parts.iter().flat_map(|it| &it.bodies).map(|it| it.data.len()).sum();
    (parts.iter().map(|it| it.spans.len() + 1 + VECTOR * it.vectors.len()).sum(), bytes)
}

/// What a transaction needs beside its chunks.
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
    let sizes: Vec<usize> = group.iter().map(|it| it.parts.len()).collect();
    let mut answers = Vec::with_capacity(group.len());
    let mut parts = Vec::with_capacity(sizes.iter().sum());
    let mut allowance = Allowance { slot, ..Allowance::default() };
    let mut held = Vec::new();
    for mut submission in group {
        held.extend(submission.memory.take());
        if let Some(part) = submission.parts.first() {
            let (tenant, terms) = (part.trace.tenant_id, submission.terms);
            allowance.limits.extend(terms.limit.map(|it| (tenant, it)));
            allowance.embedding.extend(terms.embeds.then_some(tenant));
        }
        parts.extend(submission.parts);
        answers.push(submission.answer);
    }
    let attempted = attempt(storage, &mut parts, &allowance).await;
    telemetry.ingest.committed(answers.len(), began.elapsed(), attempted.is_ok());
    match attempted {
        Ok(outcomes) => {
            announce(changed, &parts, &outcomes);
            tally(telemetry, &parts, &outcomes);
            let mut stored = parts.into_iter().zip(outcomes);
            for (answer, size) in answers.into_iter().zip(sizes) {
                // Who no longer waits has been cut off; the data is stored all the same.
                _ = answer.send(Ok(stored.by_ref().take(size).collect()));
            }
        }
        Err(error) if answers.len() == 1 => {
            if let Some(answer) = answers.pop() {
                _ = answer.send(Err(error));
            }
        }
        // The database is away: it would be so for each of them, one wait after the other.
        Err(Error::Problem(away)) if away.code == ErrorCode::Overloaded => {
            for answer in answers {
                _ = answer.send(Err(Error::Problem(away.clone())));
            }
        }
        // One request must not take others down with it: each is tried alone.
        Err(error) => {
            tracing::warn!(%error, requests = answers.len(), "a group could not be committed; its requests are tried alone");
            let mut parts = parts.into_iter();
            for (answer, size) in answers.into_iter().zip(sizes) {
                let mut own: Vec<TraceChunk> = parts.by_ref().take(size).collect();
                let result = attempt(storage, &mut own, &allowance).await;
                if let Ok(outcomes) = &result {
                    announce(changed, &own, outcomes);
                    tally(telemetry, &own, outcomes);
                }
                _ = answer.send(result.map(|it| own.into_iter().zip(it).collect()));
            }
        }
    }
}

/// One transaction, tried again while it loses against others.
async fn attempt(
    storage: Storage<'_>,
    parts: &mut [TraceChunk],
    allowance: &Allowance,
) -> Result<Vec<ChunkOutcome>> {
    let Storage { db, rules, clock } = storage;
    let mut tried = 0;
    loop {
        tried += 1;
        let stored = db.health.while_reachable(store(db, parts, allowance, rules, clock.now()));
        match stored.await.unwrap_or_else(|it| Err(it.into())) {
            Ok(outcomes) => return Ok(outcomes),
            Err(error) if tried < TRIES && lost_a_race(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn announce(changed: &broadcast::Sender<Uuid>, parts: &[TraceChunk], outcomes: &[ChunkOutcome]) {
    let mut last = None;
    for (part, outcome) in parts.iter().zip(outcomes) {
        let tenant = part.trace.tenant_id;
        if matches!(outcome, ChunkOutcome::New | ChunkOutcome::Merged) && last != Some(tenant) {
            // Nobody may be listening.
            _ = changed.send(tenant);
            last = Some(tenant);
        }
    }
}

fn tally(telemetry: &Telemetry, parts: &[TraceChunk], outcomes: &[ChunkOutcome]) {
    let figures = &telemetry.ingest;
    let mut spans = 0;
    for (part, outcome) in parts.iter().zip(outcomes) {
        let traces = match outcome {
            ChunkOutcome::New => &figures.new,
            ChunkOutcome::Merged => &figures.merged,
            ChunkOutcome::Duplicate { .. } => {
                figures.duplicate.inc();
                continue;
            }
            ChunkOutcome::Refused => {
                figures.refuse(ErrorCode::IngestQuotaExceeded.as_str(), 1);
                continue;
            }
        };
        traces.inc();
        spans += part.spans.len();
    }
    figures.spans.inc_by(count(spans));
}
