//! Recomputes the rows of traces from their spans.

use std::collections::HashMap;

use entities::{dialect::Dialect, span, span_block, trace, trace_tail};
use uuid::Uuid;

use super::{
    rules::{StoredGroup, TraceRules},
    statements::{Key, PostgresStore, SqliteStore, WriteStatements},
};
use crate::{
    bulk::OnConflict,
    db::Db,
    metrics::delta::Delta,
    span_block::{pack, unpack},
    trace_index::{Terms, keys::KeySource, tail},
};

/// Minimum number of spans of a long trace: a job recomputes its row, at most once per second, instead of
/// the transaction that adds the spans.
pub const LONG_TRACE_SPANS: i32 = 2_000;

/// A locked trace with all of its spans.
pub(super) struct LockedTrace {
    pub(super) row: trace::Model,
    pub(super) spans: Vec<span::Model>,
    /// Whether the spans are in a span block. Some of them may be new, and not stored yet.
    pub(super) are_in_block: bool,
}

/// Returns the spans of each of these locked traces of a tenant whose spans are in a block, by the key of the trace. Traces
/// without spans are included, because their first spans form a block.
pub(super) async fn spans_in_blocks(
    store: &mut impl WriteStatements,
    tenant: Uuid,
    traces: impl Iterator<Item = &trace::Model>,
) -> sqlx::Result<HashMap<i64, Vec<span::Model>>> {
    let (mut keys, mut spans) = (Vec::new(), HashMap::new());
    for trace in traces {
        match trace.span_count {
            0 => _ = spans.insert(trace.key, Vec::new()),
            1..LONG_TRACE_SPANS => keys.push(trace.key),
            _ => {}
        }
    }
    for block in store.span_blocks(tenant, &keys).await? {
        spans.insert(block.trace_key, unpack(&block).map_err(|it| sqlx::Error::Decode(it.into()))?);
    }
    Ok(spans)
}

/// Returns these locked traces of a tenant with their spans. Those that are not `in_blocks` are read.
pub(super) async fn with_spans(
    store: &mut impl WriteStatements,
    tenant: Uuid,
    traces: Vec<trace::Model>,
    mut in_blocks: HashMap<i64, Vec<span::Model>>,
) -> sqlx::Result<Vec<LockedTrace>> {
    let keys: Vec<i64> = traces.iter().map(|it| it.key).filter(|it| !in_blocks.contains_key(it)).collect();
    let mut in_rows: HashMap<i64, Vec<span::Model>> = HashMap::new();
    for span in store.spans_of(tenant, &keys).await? {
        in_rows.entry(span.trace_key).or_default().push(span);
    }
    let locked = |row: trace::Model| match in_blocks.remove(&row.key) {
        Some(spans) => LockedTrace { row, spans, are_in_block: true },
        None => {
            let spans = in_rows.remove(&row.key).unwrap_or_default();
            LockedTrace { row, spans, are_in_block: false }
        }
    };
    Ok(traces.into_iter().map(locked).collect())
}

/// Recomputes the rows of these traces of a tenant, and stores the changes of rows and span blocks. With
/// `keeps_ready`, traces that are ready stay ready. Adds the changes of the metrics to `delta`. Returns the rows.
pub(super) async fn sum_up(
    store: &mut impl WriteStatements,
    rules: &dyn TraceRules,
    (tenant, mut traces): (Uuid, Vec<LockedTrace>),
    keeps_ready: bool,
    (delta, keys): (&mut Delta, &KeySource),
    now: i64,
) -> sqlx::Result<Vec<trace::Model>> {
    traces.sort_unstable_by_key(|it| it.row.id);
    let terms = Terms::of(tenant);
    let mut changed_spans: Vec<span::Model> = Vec::new();
    let mut blocks: Vec<span_block::Model> = Vec::new();
    let mut unindexed: Vec<trace_tail::Model> = Vec::new();
    let mut rows = Vec::with_capacity(traces.len());
    for LockedTrace { row: stored, mut spans, are_in_block } in traces {
        let mut trace = stored.clone();
        let before: Vec<_> = spans.iter().map(counts).collect();
        let received = spans.iter().map(|it| it.created_at).max().unwrap_or(now);
        rules.summarise(&mut trace, &mut spans, received);
        if keeps_ready && stored.ready {
            (trace.ready, trace.ready_at) = (true, stored.ready_at);
        }
        trace.updated_at = now;
        (trace.measured, trace.tokens_measured) = (true, true);
        delta.replace(&stored, &trace);
        if trace.started_at != stored.started_at || terms.of_trace(&trace) != terms.of_trace(&stored) {
            unindexed.push(tail::change(tenant, trace.key, keys.take_one(now)));
        }
        if !are_in_block {
            let flipped = spans.into_iter().zip(before).filter(|(it, was)| counts(it) != *was);
            changed_spans.extend(flipped.map(|it| it.0));
        } else if let Some(block) = pack(&spans) {
            blocks.push(block);
        } else {
            // The spans have become too many or too large for a block.
            store.remove_span_block(tenant, trace.key).await?;
            changed_spans.append(&mut spans);
        }
        rows.push(trace);
    }
    store.insert(&rows.iter().collect::<Vec<_>>(), OnConflict::Replace).await?;
    store.insert(&blocks.iter().collect::<Vec<_>>(), OnConflict::Replace).await?;
    store.insert(&changed_spans.iter().collect::<Vec<_>>(), OnConflict::Replace).await?;
    store.insert(&unindexed.iter().collect::<Vec<_>>(), OnConflict::Fail).await?;
    Ok(rows)
}

/// Recomputes the row of a long trace from its spans. Returns false if the row is up to date or the trace is
/// gone.
///
/// # Errors
/// Fails when the database fails.
pub async fn sum_up_long(
    db: &Db,
    rules: &dyn TraceRules,
    tenant: Uuid,
    id: Uuid,
    now: i64,
) -> sqlx::Result<bool> {
    match db.dialect {
        Dialect::Sqlite => {
            let mut tx = db.begin_sqlite().await?;
            let changed = sum_up_one(&mut SqliteStore(&mut tx), rules, &db.keys, (tenant, id), now).await?;
            tx.commit().await?;
            Ok(changed)
        }
        Dialect::Postgres => {
            let mut tx = db.begin_postgres().await?;
            let changed = sum_up_one(&mut PostgresStore(&mut tx), rules, &db.keys, (tenant, id), now).await?;
            tx.commit().await?;
            Ok(changed)
        }
    }
}

async fn sum_up_one(
    store: &mut impl WriteStatements,
    rules: &dyn TraceRules,
    keys: &KeySource,
    (tenant, id): Key,
    now: i64,
) -> sqlx::Result<bool> {
    let Some(trace) = store.lock_traces(tenant, &[id]).await?.pop() else { return Ok(false) };
    // A removed long trace may have been stored again.
    if trace.span_count < LONG_TRACE_SPANS {
        return Ok(false);
    }
    if store.count_spans(tenant, trace.key).await? == i64::from(trace.span_count) {
        return Ok(false);
    }
    let mut delta = Delta::default();
    let trace = with_spans(store, tenant, vec![trace], HashMap::new()).await?;
    let traces = sum_up(store, rules, (tenant, trace), false, (&mut delta, keys), now).await?;
    if let Some(delta) = delta.row(tenant, now) {
        store.insert(&[&delta], OnConflict::Fail).await?;
    }
    let group = StoredGroup {
        chunks: &[],
        outcomes: &[],
        late: &[],
        embedding: None,
        merged: &traces,
        long: &[],
        awaited: &[],
        now,
    };
    let jobs = rules.jobs(&group);
    store.insert(&jobs.iter().collect::<Vec<_>>(), OnConflict::Fail).await?;
    Ok(true)
}

/// Returns whether the tokens of a span count towards the sums of its trace, and whether its cost does.
fn counts(span: &span::Model) -> (bool, bool) {
    (span.counted, span.cost_counted)
}
