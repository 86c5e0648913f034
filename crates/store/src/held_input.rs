//! Held input: spans and log records that are kept for a while, so that they can be joined.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashSet},
    io,
};

use entities::{
    dialect::Dialect,
    held_input::{self, HeldKind},
    job,
};
use sea_orm::{ConnectionTrait, DbErr, Statement};
use uuid::Uuid;

use crate::{
    bulk::{self, OnConflict, bulk_rows},
    db::Db,
    housekeeping::ExpiringRows,
    ids::derived_id_of_bytes,
};

/// Held input by the time of its request.
pub const EXPIRING_HELD_INPUT: ExpiringRows = ExpiringRows::of("held_input", "received_at");

/// Maximum number of rows that one statement looks up by their traces and IDs.
pub(crate) const MAX_PAIRS: usize = 256;

/// Compression level: the rows live for a short time.
const COMPRESSION_LEVEL: i32 = 1;

thread_local! {
    /// A compressor has tables of several hundred KiB, which are expensive to set up for each row.
    static THREAD_COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
}

bulk_rows!(held_input::Model, "held_input", key "tenant_id, trace_id, id", {
    tenant_id: "uuid", trace_id: "uuid", id: "uuid", project_id: "uuid", kind: "int2", joined: "bool", items: "int4",
    size: "int4", data: "bytea", received_at: "int8",
});

/// The tenant and project of held input, and the time of its receipt in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct HeldFor {
    /// The tenant.
    pub tenant_id: Uuid,
    /// The project.
    pub project_id: Uuid,
    /// Microseconds.
    pub now: i64,
}

/// Returns the row of a span. Its ID is that of the span.
///
/// # Errors
///
/// Fails when the compressor runs out of memory.
pub fn span_row(
    held_for: HeldFor,
    span: (Uuid, Uuid),
    data: &[u8],
    decoded_bytes: usize,
) -> io::Result<held_input::Model> {
    row(held_for, span, (HeldKind::Spans, 1), data, decoded_bytes)
}

/// Returns the row of log records of a trace. Its ID is derived from the log records.
///
/// # Errors
///
/// Fails when the compressor runs out of memory.
pub fn records_row(
    held_for: HeldFor,
    trace: Uuid,
    count: usize,
    data: &[u8],
    decoded_bytes: usize,
) -> io::Result<held_input::Model> {
    row(
        held_for,
        (trace, derived_id_of_bytes(trace, data)),
        (HeldKind::LogRecords, count),
        data,
        decoded_bytes,
    )
}

fn row(
    held_for: HeldFor,
    (trace_id, id): (Uuid, Uuid),
    (kind, items): (HeldKind, usize),
    data: &[u8],
    decoded_bytes: usize,
) -> io::Result<held_input::Model> {
    let HeldFor { tenant_id, project_id, now } = held_for;
    let count = |it: usize| i32::try_from(it).unwrap_or(i32::MAX);
    Ok(held_input::Model {
        tenant_id,
        trace_id,
        id,
        project_id,
        kind: kind.code(),
        joined: false,
        items: count(items),
        size: count(data.len().saturating_add(decoded_bytes)),
        data: THREAD_COMPRESSOR.with_borrow_mut(|slot| {
            let compressor = match slot {
                Some(compressor) => compressor,
                None => slot.insert(zstd::bulk::Compressor::new(COMPRESSION_LEVEL)?),
            };
            compressor.compress(data)
        })?,
        received_at: now,
    })
}

/// Returns the span or the log records of a row.
///
/// # Errors
///
/// Fails when the data are damaged.
pub fn data(row: &held_input::Model) -> io::Result<Vec<u8>> {
    zstd::bulk::decompress(&row.data, usize::try_from(row.size).unwrap_or_default())
}

/// Removes rows that were received before `before` (microseconds), at most `limit`. Returns the number of log records in them
/// that were not joined, by their project, and the number of rows.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn remove_expired(
    db: &Db,
    tenant: Uuid,
    before: i64,
    limit: u64,
) -> Result<(BTreeMap<Uuid, i64>, u64), DbErr> {
    let sql = "DELETE FROM held_input WHERE tenant_id = $1 AND received_at < $2 AND received_at <= COALESCE((\
               SELECT received_at FROM held_input WHERE tenant_id = $1 AND received_at < $2 \
               ORDER BY received_at LIMIT 1 OFFSET $3), $2) RETURNING project_id, kind, joined, items";
    let offset = i64::try_from(limit.saturating_sub(1)).unwrap_or(i64::MAX);
    let values = [tenant.into(), before.into(), offset.into()];
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
    let rows = db.write.query_all_raw(statement).await?;
    let mut unjoined = BTreeMap::new();
    for row in &rows {
        let (kind, joined): (i16, bool) = (row.try_get_by_index(1)?, row.try_get_by_index(2)?);
        if kind == HeldKind::LogRecords.code() && !joined {
            *unjoined.entry(row.try_get_by_index(0)?).or_default() +=
                i64::from(row.try_get_by_index::<i32>(3)?);
        }
    }
    Ok((unjoined, rows.len() as u64))
}

/// Returns those of these traces and IDs that are stored.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn stored(db: &Db, tenant: Uuid, rows: &[(Uuid, Uuid)]) -> sqlx::Result<HashSet<(Uuid, Uuid)>> {
    let mut found = HashSet::with_capacity(rows.len());
    for rows in rows.chunks(MAX_PAIRS) {
        match db.dialect {
            Dialect::Sqlite => {
                let rows: Vec<(Uuid, Uuid)> = bulk::padded(rows).collect();
                let sql = format!("SELECT held.trace_id, held.id {}", joined_with_pairs(rows.len()));
                let query = sqlx::query_as::<_, (Uuid, Uuid)>(sqlx::AssertSqlSafe(sql)).bind(tenant);
                let query = rows.into_iter().fold(query, |query, (trace, id)| query.bind(trace).bind(id));
                found.extend(query.fetch_all(db.read.get_sqlite_connection_pool()).await?);
            }
            Dialect::Postgres => {
                let (traces, ids): (Vec<Uuid>, Vec<Uuid>) = rows.iter().copied().unzip();
                let sql = "SELECT trace_id, id FROM held_input WHERE tenant_id = $1 \
                           AND (trace_id, id) IN (SELECT * FROM unnest($2::uuid[], $3::uuid[]))";
                let query = sqlx::query_as::<_, (Uuid, Uuid)>(sql).bind(tenant).bind(traces).bind(ids);
                found.extend(query.fetch_all(db.read.get_postgres_connection_pool()).await?);
            }
        }
    }
    Ok(found)
}

/// Returns the sources of a statement of SQLite on rows with pairs of a trace and an ID, which `$1`, the tenant, precedes. The
/// database looks up each pair. With a list of pairs in the condition, it would read all rows of the traces.
pub(crate) fn joined_with_pairs(pairs: usize) -> String {
    let values: Vec<String> = (1..=pairs).map(|it| format!("(${},${})", it * 2, it * 2 + 1)).collect();
    format!(
        "FROM (VALUES {}) AS pair CROSS JOIN held_input AS held \
         ON held.tenant_id = $1 AND held.trace_id = pair.column1 AND held.id = pair.column2",
        values.join(",")
    )
}

/// Stores log records, except repeated ones, together with the jobs that join them with their spans.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn hold(db: &Db, rows: &[held_input::Model], jobs: &[job::Model]) -> sqlx::Result<()> {
    // In one order, so that two requests with the same rows cannot deadlock.
    let mut rows: Vec<&held_input::Model> = rows.iter().collect();
    rows.sort_unstable_by_key(|it| (it.trace_id, it.id));
    let jobs: Vec<&job::Model> = jobs.iter().collect();
    match db.dialect {
        Dialect::Sqlite => {
            let mut tx = db.begin_sqlite().await?;
            bulk::insert_sqlite(&mut tx, &rows, OnConflict::Keep).await?;
            bulk::insert_sqlite(&mut tx, &jobs, OnConflict::Keep).await?;
            tx.commit().await
        }
        Dialect::Postgres => {
            let mut tx = db.begin_postgres().await?;
            bulk::insert_postgres(&mut tx, &rows, OnConflict::Keep).await?;
            bulk::insert_postgres(&mut tx, &jobs, OnConflict::Keep).await?;
            tx.commit().await
        }
    }
}
