//! The decisions of the server during a transaction that stores traces.
//!
//! The store knows rows and locks. How a trace follows from its spans, and which jobs a stored trace makes
//! necessary, are rules of the product. The server passes them in, and the store calls them inside the
//! transaction: once for each merged trace and once for each group.

use std::collections::HashSet;

use entities::{job, span, trace};
use uuid::Uuid;

use super::{ChunkOutcome, TraceChunk};

/// The rules that a writing transaction applies.
pub trait TraceRules: Send + Sync {
    /// Recomputes the row of a trace from all of its spans, and decides which spans count. `received_at` is
    /// the time at which the newest span was received.
    fn summarise(&self, trace: &mut trace::Model, spans: &mut [span::Model], received_at: i64);

    /// Returns the jobs that a stored group makes necessary. A job whose id exists already is dropped.
    fn jobs(&self, group: &StoredGroup<'_>) -> Vec<job::Model>;

    /// Called with these jobs after the transaction of the group was committed.
    fn committed(&self, jobs: &[job::Model]);
}

/// The traces that one transaction stored.
#[derive(Clone, Copy, Debug)]
pub struct StoredGroup<'a> {
    pub(super) chunks: &'a [TraceChunk],
    pub(super) outcomes: &'a [ChunkOutcome],
    /// Indexes of the chunks whose trace was stored before, ascending.
    pub(super) late: &'a [usize],
    pub(super) embedding: Option<&'a HashSet<Uuid>>,
    /// The current rows of the traces that were recomputed.
    pub merged: &'a [trace::Model],
    /// Tenants and ids of long traces to which spans were added. A job recomputes their rows.
    pub long: &'a [(Uuid, Uuid)],
    /// Tenants and ids of traces with held spans and with log records that were not joined, without long traces.
    pub awaited: &'a [(Uuid, Uuid)],
    /// The time of the commit, microseconds.
    pub now: i64,
}

impl<'a> StoredGroup<'a> {
    /// Returns the chunks whose traces were stored for the first time.
    pub fn inserted(&self) -> impl Iterator<Item = &'a TraceChunk> {
        inserted(self.chunks, self.outcomes, self.late)
    }

    /// Returns the chunks whose spans are stored. Some of them may have been stored before.
    pub fn stored(&self) -> impl Iterator<Item = &'a TraceChunk> {
        let outcomes = self.chunks.iter().zip(self.outcomes);
        outcomes.filter(|it| matches!(it.1, ChunkOutcome::New | ChunkOutcome::Merged)).map(|it| it.0)
    }

    /// Returns the chunks of tenants whose spans are embedded.
    pub fn embedded(&self) -> impl Iterator<Item = &'a TraceChunk> {
        let embedding = self.embedding;
        self.stored().filter(move |it| embedding.is_some_and(|ids| ids.contains(&it.trace.tenant_id)))
    }
}

/// Returns the chunks whose traces were stored for the first time; `late` has the indexes of the others.
pub(super) fn inserted<'s>(
    chunks: &'s [TraceChunk],
    outcomes: &'s [ChunkOutcome],
    late: &'s [usize],
) -> impl Iterator<Item = &'s TraceChunk> {
    let stored = move |i: usize| late.binary_search(&i).is_err() && outcomes[i] != ChunkOutcome::Refused;
    chunks.iter().enumerate().filter(move |(i, _)| stored(*i)).map(|it| it.1)
}
