//! Stores chunks: one transaction per group.
//!
//! A chunk of a new trace is inserted as it is. For a known trace, the chunk's new spans are added, and the
//! trace's row is recomputed from all of its spans while it is locked; spans that are stored already change
//! nothing. A job updates the row of a long trace within seconds. The spans of most traces are in one span block each, which
//! a late chunk replaces, until they are too many or too large. Rows are written in the order of their keys, so that two
//! writers cannot deadlock.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use entities::{
    dialect::Dialect, evaluation, event, held_input, job, metric_delta, span, span_block, trace, trace_tail,
};
use uuid::Uuid;

use super::{
    chunk::{JoinedRecords, TraceChunk},
    page_assignment,
    quota::{self, Allowance},
    rules::{StoredGroup, TraceRules, inserted},
    statements::{Key, PostgresStore, SpanKey, SqliteStore, WriteStatements},
    sum_up,
};
use crate::{
    bulk::OnConflict,
    db::{Db, is_used_trace_key},
    metrics::delta::Delta,
    span_block::pack,
    trace_index::{keys::KeySource, tail},
};

/// Number of times that a group is stored again because its new traces got keys that are in use.
const MAX_KEY_CONFLICTS: usize = 4;

/// The result of storing a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkOutcome {
    /// The trace was new.
    New,
    /// The trace existed; the new spans were added.
    Merged,
    /// The trace of a JSON batch item is stored already. Nothing changed.
    Duplicate {
        /// Whether the stored trace came from the same JSON text.
        identical: bool,
    },
    /// The trace is new, and exceeds the monthly quota or must not be created. Nothing was stored.
    Refused,
}

/// Stores the chunks in one transaction. Returns the outcome of each, in their order.
///
/// # Errors
/// Fails when the database fails; nothing is stored then.
pub async fn store(
    db: &Db,
    chunks: &mut [TraceChunk],
    allowance: &Allowance,
    rules: &dyn TraceRules,
    now: i64,
) -> sqlx::Result<Vec<ChunkOutcome>> {
    let mut conflicts = 0;
    loop {
        match store_group(db, chunks, allowance, rules, now).await {
            Err(error) if conflicts < MAX_KEY_CONFLICTS && is_used_trace_key(&error) => {
                conflicts += 1;
                db.keys.avoid_conflicts(greatest_key(db, chunks).await?);
            }
            stored => return stored,
        }
    }
}

/// Returns the greatest key that may conflict with those of these chunks: on SQLite of all traces, on PostgreSQL of the
/// traces of the same tenants.
async fn greatest_key(db: &Db, chunks: &[TraceChunk]) -> sqlx::Result<i64> {
    if db.dialect == Dialect::Sqlite {
        let pool = db.write.get_sqlite_connection_pool();
        let key: Option<i64> = sqlx::query_scalar("SELECT MAX(key) FROM trace").fetch_one(pool).await?;
        return Ok(key.unwrap_or_default());
    }
    let pool = db.write.get_postgres_connection_pool();
    let tenants: BTreeSet<Uuid> = chunks.iter().map(|it| it.trace.tenant_id).collect();
    let mut greatest = 0;
    for tenant in tenants {
        let key: Option<i64> = sqlx::query_scalar("SELECT MAX(key) FROM trace WHERE tenant_id = $1")
            .bind(tenant)
            .fetch_one(pool)
            .await?;
        greatest = greatest.max(key.unwrap_or_default());
    }
    Ok(greatest)
}

async fn store_group(
    db: &Db,
    chunks: &mut [TraceChunk],
    allowance: &Allowance,
    rules: &dyn TraceRules,
    now: i64,
) -> sqlx::Result<Vec<ChunkOutcome>> {
    let mut group = Group::of(chunks, allowance, rules, &db.keys, now);
    match db.dialect {
        Dialect::Sqlite => {
            let mut tx = db.begin_sqlite().await?;
            group.run(&mut SqliteStore(&mut tx)).await?;
            tx.commit().await?;
        }
        Dialect::Postgres => {
            let mut tx = db.begin_postgres().await?;
            group.run(&mut PostgresStore(&mut tx)).await?;
            tx.commit().await?;
        }
    }
    let outcomes = group.outcomes.iter();
    let changed = outcomes
        .zip(group.chunks.iter())
        .filter(|it| matches!(it.0, ChunkOutcome::New | ChunkOutcome::Merged));
    db.tail_growth.add(changed.map(|it| it.1.trace.tenant_id));
    rules.committed(&group.jobs);
    Ok(group.outcomes)
}

struct Group<'a> {
    chunks: &'a mut [TraceChunk],
    allowance: &'a Allowance,
    rules: &'a dyn TraceRules,
    keys: &'a KeySource,
    outcomes: Vec<ChunkOutcome>,
    now: i64,
    /// Tenants and ids of long traces to which spans were added.
    long: Vec<(Uuid, Uuid)>,
    /// Traces and IDs of the log records of each tenant with which the spans of late chunks were converted.
    late_joined: BTreeMap<Uuid, Vec<(Uuid, Uuid)>>,
    /// Changes to the metrics of each tenant.
    deltas: BTreeMap<Uuid, Delta>,
    /// The jobs that were enqueued.
    jobs: Vec<job::Model>,
}

impl<'a> Group<'a> {
    fn of(
        chunks: &'a mut [TraceChunk],
        allowance: &'a Allowance,
        rules: &'a dyn TraceRules,
        keys: &'a KeySource,
        now: i64,
    ) -> Self {
        Self {
            outcomes: vec![ChunkOutcome::New; chunks.len()],
            chunks,
            allowance,
            rules,
            keys,
            now,
            long: Vec::new(),
            late_joined: BTreeMap::new(),
            deltas: BTreeMap::new(),
            jobs: Vec::new(),
        }
    }

    async fn run(&mut self, store: &mut impl WriteStatements) -> sqlx::Result<()> {
        for chunk in self.chunks.iter_mut() {
            chunk.trace.updated_at = self.now;
        }
        let late = self.insert_new_traces(store).await?;
        self.insert_new_children(store, &late).await?;
        let changed = self.merge(store, &late).await?;
        self.measure_new(&late);
        self.mark_joined(store, &late).await?;
        let awaited = self.traces_with_open_records(store).await?;
        self.jobs = self.rules.jobs(&StoredGroup {
            chunks: self.chunks,
            outcomes: &self.outcomes,
            late: &late,
            embedding: Some(&self.allowance.embedding),
            merged: &changed,
            long: &self.long,
            awaited: &awaited,
            now: self.now,
        });
        // The job of a long trace may exist from an earlier commit in the same second.
        store.insert(&self.jobs.iter().collect::<Vec<&job::Model>>(), OnConflict::Keep).await?;
        let deltas = std::mem::take(&mut self.deltas);
        let deltas: Vec<metric_delta::Model> =
            deltas.into_iter().filter_map(|(tenant, it)| it.row(tenant, self.now)).collect();
        store.insert(&deltas.iter().collect::<Vec<_>>(), OnConflict::Fail).await
    }

    /// Marks the log records that the stored spans were converted with.
    async fn mark_joined(&mut self, store: &mut impl WriteStatements, late: &[usize]) -> sqlx::Result<()> {
        let mut joined = std::mem::take(&mut self.late_joined);
        for chunk in self.inserted(late).filter(|it| !it.joined.is_empty()) {
            let rows = chunk.joined.iter().map(|it| (chunk.trace.id, it.id));
            joined.entry(chunk.trace.tenant_id).or_default().extend(rows);
        }
        for (tenant, rows) in joined {
            store.mark_joined(tenant, &rows).await?;
        }
        Ok(())
    }

    /// Returns the tenants and IDs of the traces with held spans and with log records that were not joined. Long traces are left
    /// out: the statement reads all held rows of a trace.
    async fn traces_with_open_records(
        &self,
        store: &mut impl WriteStatements,
    ) -> sqlx::Result<Vec<(Uuid, Uuid)>> {
        let mut held: BTreeMap<Uuid, BTreeSet<Uuid>> = BTreeMap::new();
        for (chunk, outcome) in self.chunks.iter().zip(&self.outcomes) {
            let is_stored = matches!(outcome, ChunkOutcome::New | ChunkOutcome::Merged);
            if is_stored && !chunk.held.is_empty() && !self.long.contains(&key(&chunk.trace)) {
                held.entry(chunk.trace.tenant_id).or_default().insert(chunk.trace.id);
            }
        }
        let mut found = Vec::new();
        for (tenant, traces) in held {
            let traces: Vec<Uuid> = traces.into_iter().collect();
            let open = store.traces_with_open_records(tenant, &traces).await?;
            found.extend(open.into_iter().map(|it| (tenant, it)));
        }
        Ok(found)
    }

    /// Counts the traces that were inserted.
    fn measure_new(&mut self, late: &[usize]) {
        let mut deltas = std::mem::take(&mut self.deltas);
        for chunk in self.inserted(late) {
            deltas.entry(chunk.trace.tenant_id).or_default().add(&chunk.trace);
        }
        self.deltas = deltas;
    }

    /// Inserts the traces that the quota allows. Returns the indexes of chunks whose trace existed or occurs
    /// earlier in the group.
    async fn insert_new_traces(&mut self, store: &mut impl WriteStatements) -> sqlx::Result<Vec<usize>> {
        let mut firsts: Vec<usize> = Vec::with_capacity(self.chunks.len());
        let mut late = Vec::new();
        let mut seen = HashSet::with_capacity(self.chunks.len());
        for (i, chunk) in self.chunks.iter().enumerate() {
            if seen.insert(key(&chunk.trace)) { firsts.push(i) } else { late.push(i) }
        }
        firsts.sort_unstable_by_key(|it| key(&self.chunks[*it].trace));
        if self.allowance.are_action_outputs {
            return self.known_only(store, firsts, late).await;
        }
        let (counted, refused) =
            quota::count_new_traces(store, self.chunks, &firsts, self.allowance, self.now).await?;
        if !refused.is_empty() {
            firsts.retain(|it| !refused.contains(it));
            self.refuse(&refused, &mut late);
        }
        for (key, place) in self.keys.take(firsts.len(), self.now).zip(&firsts) {
            self.chunks[*place].set_key(key);
        }
        page_assignment::assign_pages(self.chunks, &firsts);
        let rows: Vec<&trace::Model> = firsts.iter().map(|it| &self.chunks[*it].trace).collect();
        let new = store.insert_new_traces(&rows).await?;
        quota::uncount_stored_traces(store, counted, &new, self.allowance, self.now).await?;
        late.extend(firsts.into_iter().filter(|it| !new.contains(&key(&self.chunks[*it].trace))));
        late.sort_unstable();
        Ok(late)
    }

    /// Locks the traces of chunks, and refuses those that are not stored. Returns the indexes of the others.
    async fn known_only(
        &mut self,
        store: &mut impl WriteStatements,
        firsts: Vec<usize>,
        mut late: Vec<usize>,
    ) -> sqlx::Result<Vec<usize>> {
        let mut refused = HashSet::new();
        for place in firsts {
            let trace = &self.chunks[place].trace;
            match store.lock_traces(trace.tenant_id, &[trace.id]).await?.is_empty() {
                true => _ = refused.insert(place),
                false => late.push(place),
            }
        }
        self.refuse(&refused, &mut late);
        late.sort_unstable();
        Ok(late)
    }

    /// Marks refused chunks, and later chunks of the same traces.
    fn refuse(&mut self, refused: &HashSet<usize>, late: &mut Vec<usize>) {
        let traces: HashSet<Key> = refused.iter().map(|it| key(&self.chunks[*it].trace)).collect();
        let (chunks, outcomes) = (&self.chunks, &mut self.outcomes);
        late.retain(|it| {
            let kept = !traces.contains(&key(&chunks[*it].trace));
            if !kept {
                outcomes[*it] = ChunkOutcome::Refused;
            }
            kept
        });
        for place in refused {
            outcomes[*place] = ChunkOutcome::Refused;
        }
    }

    /// Returns the chunks whose traces were inserted.
    fn inserted<'s>(&'s self, late: &'s [usize]) -> impl Iterator<Item = &'s TraceChunk> {
        inserted(self.chunks, &self.outcomes, late)
    }

    async fn insert_new_children(
        &self,
        store: &mut impl WriteStatements,
        late: &[usize],
    ) -> sqlx::Result<()> {
        let new = || self.inserted(late);
        let mut span_blocks: Vec<span_block::Model> = Vec::new();
        let mut spans: Vec<&span::Model> = Vec::new();
        for chunk in new() {
            match pack(&chunk.spans) {
                Some(block) => span_blocks.push(block),
                None => spans.extend(&chunk.spans),
            }
        }
        // SQLite fills pages completely if rows are appended.
        span_blocks.sort_unstable_by_key(|it| it.trace_key);
        spans.sort_by_key(|it| it.trace_key);
        store.insert(&span_blocks.iter().collect::<Vec<_>>(), OnConflict::Fail).await?;
        store.insert(&spans, OnConflict::Fail).await?;
        let (pages, blocks) = page_assignment::rows(new());
        let bodies: Vec<_> = pages.iter().chain(blocks).collect();
        store.insert(&bodies, OnConflict::Fail).await?;
        let events: Vec<&event::Model> = new().flat_map(|it| &it.events).collect();
        store.insert(&events, OnConflict::Fail).await?;
        let vectors: Vec<_> = new().flat_map(|it| &it.vectors).collect();
        store.insert(&vectors, OnConflict::Fail).await?;
        let evaluations: Vec<_> = new().flat_map(|it| &it.evaluations).collect();
        store.insert(&evaluations, OnConflict::Keep).await?;
        let mut held: Vec<_> = new().flat_map(|it| &it.held).collect();
        held.sort_by_key(|it| (it.trace_id, it.id));
        store.insert(&held, OnConflict::Keep).await?;
        store.insert(&self.new_tail(late).iter().collect::<Vec<_>>(), OnConflict::Fail).await
    }

    /// Returns the rows that add the inserted traces to the tail, one for each tenant.
    fn new_tail(&self, late: &[usize]) -> Vec<trace_tail::Model> {
        let mut rows: BTreeMap<Uuid, trace_tail::Model> = BTreeMap::new();
        for trace in self.inserted(late).map(|it| &it.trace) {
            let first = tail::change(trace.tenant_id, trace.key, trace.key);
            rows.entry(trace.tenant_id)
                .and_modify(|row| {
                    row.first_key = row.first_key.min(trace.key);
                    row.last_key = row.last_key.max(trace.key);
                    row.traces += 1;
                })
                .or_insert(first);
        }
        // The lowest key of a range identifies its row too.
        rows.into_values().map(|row| trace_tail::Model { id: row.first_key, ..row }).collect()
    }

    /// Adds late chunks to their traces. Returns the current rows of the changed traces.
    async fn merge(
        &mut self,
        store: &mut impl WriteStatements,
        late: &[usize],
    ) -> sqlx::Result<Vec<trace::Model>> {
        let mut by_tenant: HashMap<Uuid, Vec<usize>> = HashMap::new();
        for i in late {
            by_tenant.entry(self.chunks[*i].trace.tenant_id).or_default().push(*i);
        }
        let mut tenants: Vec<_> = by_tenant.into_iter().collect();
        tenants.sort_unstable_by_key(|it| it.0);
        let mut changed = Vec::new();
        for (tenant, late) in tenants {
            changed.append(&mut self.merge_tenant(store, tenant, &late).await?);
        }
        Ok(changed)
    }

    async fn merge_tenant(
        &mut self,
        store: &mut impl WriteStatements,
        tenant: Uuid,
        late: &[usize],
    ) -> sqlx::Result<Vec<trace::Model>> {
        let mut ids: Vec<Uuid> = late.iter().map(|it| self.chunks[*it].trace.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let joined = self.late_joined.entry(tenant).or_default();
        let stored: HashMap<Uuid, trace::Model> =
            store.lock_traces(tenant, &ids).await?.into_iter().map(|it| (it.id, it)).collect();
        for i in late {
            let chunk = &mut self.chunks[*i];
            // The trace was removed after the insert conflicted with it; spans without it would be orphans.
            let known = stored.get(&chunk.trace.id).ok_or(sqlx::Error::RowNotFound)?;
            chunk.set_key(known.key);
            page_assignment::give_own_row(chunk);
            self.outcomes[*i] = match &chunk.trace.digest {
                Some(digest) => ChunkOutcome::Duplicate { identical: known.digest.as_ref() == Some(digest) },
                None => ChunkOutcome::Merged,
            };
        }
        let merging = || late.iter().map(|it| (*it, &self.chunks[*it])).filter(|(_, chunk)| !chunk.is_item());
        let mut spans: Vec<(usize, &span::Model)> =
            merging().flat_map(|(i, chunk)| chunk.spans.iter().map(move |it| (i, it))).collect();
        spans.sort_by_key(|(i, it)| (it.trace_key, it.id, *i));
        // Of copies of a span, the first one is stored.
        spans.dedup_by_key(|(_, it)| (it.trace_key, it.id));
        let with_spans: HashSet<i64> = spans.iter().map(|(_, it)| it.trace_key).collect();
        let merged = stored.values().filter(|it| with_spans.contains(&it.key));
        let mut in_blocks = sum_up::spans_in_blocks(store, tenant, merged).await?;
        let first_copies: Vec<&span::Model> = spans.iter().map(|it| it.1).collect();
        let new = insert_new_spans(store, &mut in_blocks, &first_copies).await?;
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let inserted = spans.iter().filter(|(_, it)| new.contains(&(it.trace_key, it.id)));
        let used: HashSet<Uuid> = inserted.clone().filter_map(|(_, it)| it.body_id).collect();
        // The chunk that each new span is from. What other chunks have belongs to copies that were dropped.
        let origins: HashMap<(Uuid, Uuid), usize> =
            inserted.map(|(i, it)| ((it.trace_id, it.id), *i)).collect();
        let is_from = |i: usize, trace: Uuid, span: Uuid| origins.get(&(trace, span)) == Some(&i);
        let bodies: Vec<_> =
            merging().flat_map(|(_, chunk)| &chunk.bodies).filter(|it| used.contains(&it.id)).collect();
        store.insert(&bodies, OnConflict::Fail).await?;
        let mut events: Vec<&event::Model> = merging()
            .flat_map(|(i, chunk)| chunk.events.iter().map(move |it| (i, it)))
            .filter(|(i, it)| it.span_id.is_some_and(|span| is_from(*i, it.trace_id, span)))
            .map(|(_, it)| it)
            .collect();
        events.sort_by_key(|it| (it.trace_id, it.id));
        store.insert(&events, OnConflict::Keep).await?;
        let project =
            |it: &evaluation::Model| stored.get(&it.trace_id).map_or(it.project_id, |it| it.project_id);
        let evaluations: Vec<evaluation::Model> = merging()
            .flat_map(|(i, chunk)| chunk.evaluations.iter().map(move |it| (i, it)))
            .filter(|(i, it)| it.span_id.is_some_and(|span| is_from(*i, it.trace_id, span)))
            .map(|(_, it)| evaluation::Model { project_id: project(it), ..it.clone() })
            .collect();
        store.insert(&evaluations.iter().collect::<Vec<_>>(), OnConflict::Keep).await?;
        let mut held: Vec<&held_input::Model> = merging()
            .flat_map(|(i, chunk)| chunk.held.iter().map(move |it| (i, it)))
            .filter(|(i, it)| is_from(*i, it.trace_id, it.id))
            .map(|(_, it)| it)
            .collect();
        held.sort_by_key(|it| (it.trace_id, it.id));
        store.insert(&held, OnConflict::Keep).await?;
        for (i, chunk) in merging() {
            // If a span was stored without these log records, the job joins them.
            let is_stored =
                |it: &&JoinedRecords| it.spans.iter().all(|span| is_from(i, chunk.trace.id, *span));
            let rows = chunk.joined.iter().filter(is_stored).map(|it| (chunk.trace.id, it.id));
            joined.extend(rows);
        }

        let touched: HashSet<Uuid> = origins.keys().map(|it| it.0).collect();
        let traces: Vec<trace::Model> = stored.into_values().filter(|it| touched.contains(&it.id)).collect();
        // A long trace that arrives span by span must not be read completely for each span.
        let (long, short): (Vec<_>, Vec<_>) =
            traces.into_iter().partition(|it| it.span_count >= sum_up::LONG_TRACE_SPANS);
        self.long.extend(long.iter().map(|it| (tenant, it.id)));
        let (rules, now) = (self.rules, self.now);
        let keeps_ready = self.allowance.are_action_outputs;
        let delta = self.deltas.entry(tenant).or_default();
        let short = sum_up::with_spans(store, tenant, short, in_blocks).await?;
        sum_up::sum_up(store, rules, (tenant, short), keeps_ready, (delta, self.keys), now).await
    }
}

/// Adds the spans that are not stored to those `in_blocks`, or to the rows of other traces. Returns the keys of the new spans.
async fn insert_new_spans(
    store: &mut impl WriteStatements,
    in_blocks: &mut HashMap<i64, Vec<span::Model>>,
    spans: &[&span::Model],
) -> sqlx::Result<HashSet<SpanKey>> {
    let key = |it: &span::Model| (it.trace_key, it.id);
    let (of_blocks, of_rows): (Vec<_>, Vec<_>) =
        spans.iter().copied().partition(|it| in_blocks.contains_key(&it.trace_key));
    let mut new = store.insert_new_spans(&of_rows).await?;
    let known: HashSet<SpanKey> = in_blocks.values().flatten().map(key).collect();
    for span in of_blocks.into_iter().filter(|it| !known.contains(&key(it))) {
        in_blocks.entry(span.trace_key).or_default().push(span.clone());
        new.insert(key(span));
    }
    Ok(new)
}

fn key(trace: &trace::Model) -> Key {
    (trace.tenant_id, trace.id)
}
