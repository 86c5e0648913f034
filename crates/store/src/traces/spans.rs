//! Reads spans. Those of most traces are in a span block. Spans that are too many or too large for a block, and those that
//! earlier versions stored, are rows of `span`.
//!
//! A late span may move the spans of a trace from its block into rows. They never move back. Blocks are therefore read first,
//! and rows of the traces without a block after them.
//!
//! Statements are SQL, because rows are read in bulk, by the position of their columns.

use std::collections::{HashMap, HashSet};

use entities::{dialect::Dialect, span, span_block, trace};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, Statement, Value};
use uuid::Uuid;

use super::IDS_PER_STATEMENT;
use crate::{
    bulk::{self, Bulk},
    db::Db,
    span_block::{BLOCKS_PER_STATEMENT, unpack},
    trace_ids,
};

/// A position in the order of spans: start, id.
pub type Position = (i64, Uuid);

/// Calls `found` with the spans of each trace that has a block. Returns the other traces.
///
/// # Errors
/// Fails when the database fails or a block is damaged.
pub(super) async fn read_blocks(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    traces: &[Uuid],
    mut found: impl FnMut(Vec<span::Model>),
) -> Result<Vec<Uuid>, DbErr> {
    let dialect = Dialect::of(db.get_database_backend());
    let mut others = Vec::new();
    for traces in distinct(traces.iter().copied()).chunks(BLOCKS_PER_STATEMENT) {
        let mut values: Vec<Value> = vec![tenant.into()];
        let places = bulk::add_placeholders(&mut values, traces);
        let sql = format!(
            "SELECT {} FROM span_block s WHERE s.tenant_id = $1 AND s.trace_key IN ({})",
            span_block::Model::select("s"),
            keys_sql(dialect, &places)
        );
        let mut with_block = HashSet::with_capacity(traces.len());
        for block in bulk::fetch::<span_block::Model>(db, sql, values).await? {
            with_block.insert(block.trace_id);
            found(unpack(&block)?);
        }
        others.extend(traces.iter().filter(|it| !with_block.contains(it)));
    }
    Ok(others)
}

/// Returns up to `limit` spans of a trace by start, beginning after `after`.
///
/// # Errors
/// Fails when the database fails.
pub async fn spans(
    db: &Db,
    tenant: Uuid,
    trace: Uuid,
    after: Option<Position>,
    limit: u64,
) -> Result<Vec<span::Model>, DbErr> {
    let mut spans = Vec::new();
    if read_blocks(&db.read, tenant, &[trace], |it| spans = it).await?.is_empty() {
        let position = |it: &span::Model| (it.started_at, it.id);
        spans.retain(|it| after.is_none_or(|after| position(it) > after));
        spans.sort_unstable_by_key(position);
        spans.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        return Ok(spans);
    }
    let mut sql = format!(
        "SELECT {} FROM span s WHERE s.tenant_id = $1 AND s.trace_key IN ({})",
        span::Model::select("s"),
        keys_sql(db.dialect, "$2")
    );
    let mut values: Vec<Value> = vec![tenant.into(), trace.into()];
    if let Some((at, id)) = after {
        sql.push_str(" AND (s.started_at > $3 OR s.started_at = $3 AND s.id > $4)");
        values.extend([at.into(), id.into()]);
    }
    sql.push_str(&format!(" ORDER BY s.started_at, s.id LIMIT {limit}"));
    bulk::fetch(&db.read, sql, values).await
}

/// Returns the spans with these IDs (trace and span) in any order. Unknown IDs are ignored.
///
/// # Errors
/// Fails when the database fails.
pub async fn some_spans(db: &Db, tenant: Uuid, ids: &[(Uuid, Uuid)]) -> Result<Vec<span::Model>, DbErr> {
    let wanted: HashSet<(Uuid, Uuid)> = ids.iter().copied().collect();
    let mut found = Vec::with_capacity(wanted.len());
    let is_wanted = |it: &span::Model| wanted.contains(&(it.trace_id, it.id));
    let traces: Vec<Uuid> = ids.iter().map(|it| it.0).collect();
    let others =
        read_blocks(&db.read, tenant, &traces, |spans| found.extend(spans.into_iter().filter(is_wanted)))
            .await?;
    let others: HashSet<Uuid> = others.into_iter().collect();
    let ids: Vec<(Uuid, Uuid)> = wanted.into_iter().filter(|it| others.contains(&it.0)).collect();
    if ids.is_empty() {
        return Ok(found);
    }
    let places: Vec<String> = (0..ids.len()).map(|it| format!("(${},${})", 2 * it + 2, 2 * it + 3)).collect();
    // Joins in this order: each pair is one look-up in an index and one in the primary key.
    let sql = format!(
        "WITH given(trace_id, span_id) AS (VALUES {}), found AS MATERIALIZED (SELECT \
         (SELECT t.key FROM {} t WHERE t.tenant_id = $1 AND t.id = g.trace_id) AS key, g.span_id FROM given g) \
         SELECT {} FROM found f CROSS JOIN span s WHERE s.tenant_id = $1 AND s.trace_key = f.key AND s.id = f.span_id",
        places.join(","),
        trace_ids::relation(db.dialect),
        span::Model::select("s")
    );
    let ids = ids.iter().flat_map(|it| [it.0, it.1]);
    let values = std::iter::once(tenant).chain(ids).map(Into::into).collect();
    found.append(&mut bulk::fetch(&db.read, sql, values).await?);
    Ok(found)
}

/// Returns all spans of these traces, by start within each trace.
///
/// # Errors
/// Fails when the database fails.
pub async fn spans_of(db: &Db, tenant: Uuid, traces: &[Uuid]) -> Result<Vec<span::Model>, DbErr> {
    let mut found = Vec::new();
    let others = read_blocks(&db.read, tenant, traces, |mut spans| found.append(&mut spans)).await?;
    for traces in others.chunks(IDS_PER_STATEMENT) {
        let mut values: Vec<Value> = vec![tenant.into()];
        let places = bulk::add_placeholders(&mut values, traces);
        let sql = format!(
            "SELECT {} FROM span s WHERE s.tenant_id = $1 AND s.trace_key IN ({})",
            span::Model::select("s"),
            keys_sql(db.dialect, &places)
        );
        found.append(&mut bulk::fetch(&db.read, sql, values).await?);
    }
    found.sort_unstable_by_key(|it| (it.trace_id, it.started_at, it.id));
    Ok(found)
}

/// Returns the given OpenTelemetry IDs that belong to stored spans of a trace.
///
/// # Errors
/// Fails when the database fails.
pub async fn otel_ids(
    db: &Db,
    tenant: Uuid,
    trace: Uuid,
    spans: &[Uuid],
) -> Result<HashMap<Uuid, Option<Vec<u8>>>, DbErr> {
    let ids: Vec<(Uuid, Uuid)> = spans.iter().map(|it| (trace, *it)).collect();
    Ok(some_spans(db, tenant, &ids).await?.into_iter().map(|it| (it.id, it.otel_span_id)).collect())
}

/// Returns the kinds of spans that each of the traces has.
///
/// # Errors
/// Fails when the database fails.
pub async fn span_kinds(
    db: &Db,
    tenant: Uuid,
    traces: &[Uuid],
) -> Result<HashMap<Uuid, HashSet<String>>, DbErr> {
    let mut kinds: HashMap<Uuid, HashSet<String>> = HashMap::new();
    let others = read_blocks(db.current(), tenant, traces, |spans| {
        for span in spans {
            kinds.entry(span.trace_id).or_default().insert(span.kind);
        }
    });
    for traces in others.await?.chunks(IDS_PER_STATEMENT) {
        let mut values: Vec<Value> = vec![tenant.into()];
        let places = bulk::add_placeholders(&mut values, traces);
        let sql = format!(
            "SELECT DISTINCT s.trace_id, s.kind FROM span s WHERE s.tenant_id = $1 AND s.trace_key IN ({})",
            keys_sql(db.dialect, &places)
        );
        let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
        for row in db.current().query_all_raw(statement).await? {
            kinds.entry(row.try_get_by_index(0)?).or_default().insert(row.try_get_by_index(1)?);
        }
    }
    Ok(kinds)
}

/// Returns whether a trace, which is locked, has a span with this ID.
///
/// # Errors
/// Fails when the database fails.
pub async fn has_span(txn: &DatabaseTransaction, row: &trace::Model, span: Uuid) -> Result<bool, DbErr> {
    match span_block::Entity::find_by_id((row.tenant_id, row.key)).one(txn).await? {
        Some(block) => Ok(unpack(&block)?.iter().any(|it| it.id == span)),
        None => Ok(span::Entity::find_by_id((row.tenant_id, row.key, span)).one(txn).await?.is_some()),
    }
}

/// Returns the statement that selects the keys of the tenant's traces with the IDs of these comma-separated placeholders.
fn keys_sql(dialect: Dialect, places: &str) -> String {
    format!(
        "SELECT t.key FROM {} t WHERE t.tenant_id = $1 AND t.id IN ({places})",
        trace_ids::relation(dialect)
    )
}

fn distinct(ids: impl Iterator<Item = Uuid>) -> Vec<Uuid> {
    let mut ids: Vec<Uuid> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
