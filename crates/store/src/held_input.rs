//! Held input: spans and log records that are kept for a while, so that they can be joined.

use std::io;

use entities::{
    dialect::Dialect,
    held_input::{self, HeldKind},
    job,
};
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use crate::{
    bulk::{self, OnConflict, bulk_rows},
    db::Db,
    housekeeping::ExpiringRows,
    ids::derived_id_of_bytes,
};

/// Held input by the time of its request.
pub const EXPIRING_HELD_INPUT: ExpiringRows = ExpiringRows::of("held_input", "received_at");

/// Compression level: the rows live for a short time.
const COMPRESSION_LEVEL: i32 = 1;

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

/// Returns the row of spans or log records of a trace.
///
/// # Errors
///
/// Fails when the compressor runs out of memory.
pub fn row(
    held_for: HeldFor,
    trace_id: Uuid,
    kind: HeldKind,
    items: usize,
    data: &[u8],
) -> io::Result<held_input::Model> {
    let HeldFor { tenant_id, project_id, now } = held_for;
    let count = |it: usize| i32::try_from(it).unwrap_or(i32::MAX);
    Ok(held_input::Model {
        tenant_id,
        trace_id,
        id: derived_id_of_bytes(trace_id, data),
        project_id,
        kind: kind.code(),
        joined: false,
        items: count(items),
        size: count(data.len()),
        data: zstd::bulk::compress(data, COMPRESSION_LEVEL)?,
        received_at: now,
    })
}

/// Returns the spans or log records of a row.
///
/// # Errors
///
/// Fails when the data are damaged.
pub fn data(row: &held_input::Model) -> io::Result<Vec<u8>> {
    zstd::bulk::decompress(&row.data, usize::try_from(row.size).unwrap_or_default())
}

/// Returns the number of a trace's log records in rows that were not joined.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn waiting_items(db: &impl ConnectionTrait, tenant: Uuid, trace: Uuid) -> Result<i64, DbErr> {
    use held_input::Column;
    let rows: Vec<i32> = held_input::Entity::find()
        .select_only()
        .column(Column::Items)
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::TraceId.eq(trace))
        .filter(Column::Kind.eq(HeldKind::LogRecords.code()))
        .filter(Column::Joined.eq(false))
        .into_tuple()
        .all(db)
        .await?;
    Ok(rows.into_iter().map(i64::from).sum())
}

/// Stores log records, except repeated ones, together with the job that joins them with their spans.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn hold(db: &Db, rows: &[held_input::Model], job: &job::Model) -> sqlx::Result<()> {
    // In one order, so that two requests with the same rows cannot deadlock.
    let mut rows: Vec<&held_input::Model> = rows.iter().collect();
    rows.sort_unstable_by_key(|it| (it.trace_id, it.id));
    match db.dialect {
        Dialect::Sqlite => {
            let mut tx = db.begin_sqlite().await?;
            bulk::insert_sqlite(&mut tx, &rows, OnConflict::Keep).await?;
            bulk::insert_sqlite(&mut tx, &[job], OnConflict::Keep).await?;
            tx.commit().await
        }
        Dialect::Postgres => {
            let mut tx = db.begin_postgres().await?;
            bulk::insert_postgres(&mut tx, &rows, OnConflict::Keep).await?;
            bulk::insert_postgres(&mut tx, &[job], OnConflict::Keep).await?;
            tx.commit().await
        }
    }
}
