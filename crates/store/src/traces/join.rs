//! Joins log records with the spans of stored traces: one transaction per group of traces.
//!
//! The transaction locks the traces, so that each is joined with all log records that were committed before. A span that
//! is held is converted again together with its log records and replaces the stored one; its old texts are removed. The
//! caller tries again later if a span of the log records is not stored.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    io,
};

use entities::{
    dialect::Dialect,
    evaluation, event,
    held_input::{self, HeldKind},
    job, span, trace,
};
use uuid::Uuid;

use super::{
    chunk::TraceChunk,
    join_statements::JoinStatements,
    page_assignment,
    rules::{StoredGroup, TraceRules},
    statements::{PostgresStore, SqliteStore},
    sum_up::{self, LockedTrace},
    write::ChunkOutcome,
};
use crate::{bulk::OnConflict, db::Db, metrics::delta::Delta, text_page, trace_index::keys::KeySource};

/// Maximum memory in bytes of the held input that one transaction decodes. Log records of a trace with more are not joined.
const MAX_INPUT_BYTES: i64 = 24 * 1024 * 1024;

/// Joins the log records of a trace with its spans.
pub trait JoinRules: Send + Sync {
    /// Returns the changes that the held input of a locked trace makes.
    ///
    /// # Errors
    ///
    /// Fails when the held input is damaged, or when the compressor runs out of memory.
    fn join(
        &self,
        trace: &trace::Model,
        spans: &[span::Model],
        held: &[held_input::Model],
    ) -> io::Result<JoinedLogs>;
}

/// The changes of a trace by its log records.
#[derive(Debug, Default)]
pub struct JoinedLogs {
    /// Spans that replace stored ones with the same ID, with all of their events; events and evaluations of other spans are
    /// added.
    pub chunk: Option<TraceChunk>,
    /// IDs of the rows whose log records all found their spans.
    pub joined: Vec<Uuid>,
    /// Rows in which some log records found their spans, and others did not.
    pub split: Vec<SplitRow>,
}

/// A row of log records that is replaced by two.
#[derive(Debug)]
pub struct SplitRow {
    /// The ID of the row.
    pub id: Uuid,
    /// The log records that found their spans, and the others.
    pub parts: [held_input::Model; 2],
}

/// The outcome of a join for one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinOutcome {
    /// All log records were joined.
    Joined,
    /// Log records wait for spans that are not stored.
    Waiting,
    /// The held input of other traces filled the transaction.
    NotRead,
}

/// Joins the log records of these traces of a tenant. Returns the outcome of each, and whether a trace has changed.
///
/// # Errors
///
/// Fails when the database fails or held input is damaged; nothing has changed then.
pub async fn join_logs(
    db: &Db,
    tenant: Uuid,
    traces: &[Uuid],
    (rules, joins): (&dyn TraceRules, &dyn JoinRules),
    embeds_spans: bool,
    now: i64,
) -> sqlx::Result<(Vec<(Uuid, JoinOutcome)>, bool)> {
    let mut join =
        Join { tenant, rules, joins, keys: &db.keys, embeds_spans, now, jobs: Vec::new(), changed: 0 };
    let outcomes = match db.dialect {
        Dialect::Sqlite => {
            let mut tx = db.begin_sqlite().await?;
            let outcomes = join.run(&mut SqliteStore(&mut tx), traces).await?;
            tx.commit().await?;
            outcomes
        }
        Dialect::Postgres => {
            let mut tx = db.begin_postgres().await?;
            let outcomes = join.run(&mut PostgresStore(&mut tx), traces).await?;
            tx.commit().await?;
            outcomes
        }
    };
    db.tail_growth.add(std::iter::repeat_n(tenant, join.changed));
    rules.committed(&join.jobs);
    Ok((outcomes, join.changed > 0))
}

struct Join<'a> {
    tenant: Uuid,
    rules: &'a dyn TraceRules,
    joins: &'a dyn JoinRules,
    keys: &'a KeySource,
    embeds_spans: bool,
    now: i64,
    jobs: Vec<job::Model>,
    /// Number of changed traces.
    changed: usize,
}

/// The rows that a transaction changes in addition to those of the traces.
#[derive(Default)]
struct JoinChanges {
    chunks: Vec<TraceChunk>,
    /// Replaced spans of traces without span block.
    span_rows: Vec<span::Model>,
    /// Traces and IDs of the replaced spans.
    replaced: Vec<(Uuid, Uuid)>,
    /// Keys of traces and IDs of the replaced spans.
    replaced_keys: Vec<(i64, Uuid)>,
    /// Text blocks to which no row refers any more.
    unused_texts: BTreeSet<Uuid>,
    /// Traces and IDs of the joined log records.
    joined: Vec<(Uuid, Uuid)>,
    split: Vec<SplitRow>,
}

/// The held input of a trace.
#[derive(Default)]
struct TraceInput {
    /// Memory when it is decoded.
    bytes: i64,
    /// Whether log records were not joined yet.
    is_open: bool,
}

fn is_open(row: &held_input::Model) -> bool {
    row.kind == HeldKind::LogRecords.code() && !row.joined
}

impl Join<'_> {
    async fn run(
        &mut self,
        store: &mut impl JoinStatements,
        traces: &[Uuid],
    ) -> sqlx::Result<Vec<(Uuid, JoinOutcome)>> {
        let ids: Vec<Uuid> = traces.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        let stored = store.lock_traces(self.tenant, &ids).await?;
        let mut sizes: BTreeMap<Uuid, TraceInput> = BTreeMap::new();
        for row in store.held_sizes(self.tenant, &ids).await? {
            let of_trace = sizes.entry(row.trace_id).or_default();
            of_trace.bytes += i64::from(row.size);
            of_trace.is_open |= row.is_open;
        }
        let known: HashSet<Uuid> = stored.iter().map(|it| it.id).collect();
        let (mut outcomes, mut read, mut bytes) = (BTreeMap::new(), Vec::new(), 0);
        for id in ids {
            let outcome = match sizes.get(&id) {
                Some(input) if input.is_open && known.contains(&id) && input.bytes <= MAX_INPUT_BYTES => {
                    bytes += input.bytes;
                    if bytes <= MAX_INPUT_BYTES {
                        read.push(id);
                        JoinOutcome::Waiting
                    } else {
                        JoinOutcome::NotRead
                    }
                }
                Some(input) if input.is_open => JoinOutcome::Waiting,
                _ => JoinOutcome::Joined,
            };
            outcomes.insert(id, outcome);
        }
        let mut held: BTreeMap<Uuid, Vec<held_input::Model>> = BTreeMap::new();
        // Sorted here: an ORDER BY makes SQLite read all rows of the tenant by the index of the times.
        let mut rows = store.held_input(self.tenant, &read).await?;
        rows.sort_unstable_by_key(|it| (it.received_at, it.id));
        for row in rows {
            held.entry(row.trace_id).or_default().push(row);
        }
        let stored: Vec<trace::Model> = stored.into_iter().filter(|it| held.contains_key(&it.id)).collect();
        let in_blocks = sum_up::spans_in_blocks(store, self.tenant, stored.iter()).await?;
        let locked = sum_up::with_spans(store, self.tenant, stored, in_blocks).await?;
        let (mut changes, mut changed) = (JoinChanges::default(), Vec::new());
        for mut trace in locked {
            let id = trace.row.id;
            let rows = held.remove(&id).unwrap_or_default();
            let JoinedLogs { chunk, joined, split } = self.joins.join(&trace.row, &trace.spans, &rows)?;
            if rows.iter().filter(|it| is_open(it)).all(|it| joined.contains(&it.id)) {
                outcomes.insert(id, JoinOutcome::Joined);
            }
            changes.joined.extend(joined.into_iter().map(|it| (id, it)));
            changes.split.extend(split);
            if let Some(chunk) = chunk {
                replace_spans(&mut trace, chunk, &mut changes);
                changed.push(trace);
            }
        }
        self.store(store, changed, changes).await?;
        Ok(outcomes.into_iter().collect())
    }

    async fn store(
        &mut self,
        store: &mut impl JoinStatements,
        changed: Vec<LockedTrace>,
        changes: JoinChanges,
    ) -> sqlx::Result<()> {
        let (tenant, now) = (self.tenant, self.now);
        let JoinChanges { chunks, span_rows, replaced, replaced_keys, mut unused_texts, joined, split } =
            changes;
        store.mark_joined(tenant, &joined).await?;
        let removed: Vec<(Uuid, Uuid)> = split.iter().map(|it| (it.parts[0].trace_id, it.id)).collect();
        store.remove_held(tenant, &removed).await?;
        let parts: Vec<_> = split.iter().flat_map(|it| &it.parts).collect();
        store.insert(&parts, OnConflict::Keep).await?;
        if changed.is_empty() {
            return Ok(());
        }
        store.insert(&span_rows.iter().collect::<Vec<_>>(), OnConflict::Replace).await?;
        let bodies: Vec<_> = chunks.iter().flat_map(|it| &it.bodies).collect();
        store.insert(&bodies, OnConflict::Fail).await?;
        store.remove_events_of(tenant, &replaced).await?;
        store.remove_vectors_of(tenant, &replaced_keys).await?;
        let mut events: Vec<&event::Model> = chunks.iter().flat_map(|it| &it.events).collect();
        events.sort_by_key(|it| (it.trace_id, it.id));
        store.insert(&events, OnConflict::Keep).await?;
        let evaluations: Vec<&evaluation::Model> = chunks.iter().flat_map(|it| &it.evaluations).collect();
        store.insert(&evaluations, OnConflict::Keep).await?;
        let mut delta = Delta::default();
        let keys = (&mut delta, self.keys);
        let rows = sum_up::sum_up(store, self.rules, (tenant, changed), false, keys, now).await?;
        self.changed = rows.len();
        for row in &rows {
            for block in [row.body_id, row.input_body_id, row.output_body_id].into_iter().flatten() {
                unused_texts.remove(&block);
            }
        }
        if let Some(delta) = delta.row(tenant, now) {
            store.insert(&[&delta], OnConflict::Fail).await?;
        }
        let embedding = HashSet::from([tenant]);
        self.jobs = self.rules.jobs(&StoredGroup {
            chunks: &chunks,
            outcomes: &vec![ChunkOutcome::Merged; chunks.len()],
            late: &(0..chunks.len()).collect::<Vec<_>>(),
            embedding: self.embeds_spans.then_some(&embedding),
            merged: &rows,
            long: &[],
            awaited: &[],
            now,
        });
        store.insert(&self.jobs.iter().collect::<Vec<_>>(), OnConflict::Keep).await?;
        remove_texts(store, tenant, unused_texts).await
    }
}

/// Puts the spans of the chunk in the place of the stored ones.
fn replace_spans(trace: &mut LockedTrace, mut chunk: TraceChunk, changes: &mut JoinChanges) {
    chunk.set_key(trace.row.key);
    page_assignment::give_own_row(&mut chunk);
    let mut new: HashMap<Uuid, &mut span::Model> = chunk.spans.iter_mut().map(|it| (it.id, it)).collect();
    for span in &mut trace.spans {
        let Some(new) = new.remove(&span.id) else { continue };
        // The trace is ready as long after the receipt of its spans as without log records.
        new.created_at = span.created_at;
        changes.unused_texts.extend(span.body_id);
        changes.replaced.push((span.trace_id, span.id));
        changes.replaced_keys.push((span.trace_key, span.id));
        *span = new.clone();
        if !trace.are_in_block {
            changes.span_rows.push(span.clone());
        }
    }
    for block in trace.spans.iter().filter_map(|it| it.body_id) {
        changes.unused_texts.remove(&block);
    }
    changes.chunks.push(chunk);
}

/// Removes text blocks. A page is removed with its last block.
async fn remove_texts(
    store: &mut impl JoinStatements,
    tenant: Uuid,
    blocks: BTreeSet<Uuid>,
) -> sqlx::Result<()> {
    let (mut unused, removed) = text_page::rows_of(blocks);
    let pages: Vec<Uuid> = removed.keys().copied().collect();
    let mut changed = Vec::with_capacity(pages.len());
    for mut page in store.lock_texts(tenant, &pages).await? {
        match text_page::without(&page.data, &removed[&page.id]) {
            Some(data) => {
                page.data = data;
                changed.push(page);
            }
            None => unused.push(page.id),
        }
    }
    store.insert(&changed.iter().collect::<Vec<_>>(), OnConflict::Replace).await?;
    store.remove_texts(tenant, &unused).await
}
