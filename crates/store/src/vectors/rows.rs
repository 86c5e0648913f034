//! Reads vectors from SQLite: those of a project in the order of insertion, and individual ones by row ID.
//!
//! SQLite assigns each inserted row an ID above all others of the table, and has one writer. A reader that
//! has read a project up to a row has therefore read all rows before it. IDs are reused only after the rows
//! with the highest IDs were removed. A reader therefore continues with the last row that it has read, and
//! starts again if this row has changed.
//!
//! Statements are SQL, because sea-orm has no row IDs of SQLite.

use half::{f16, slice::HalfFloatSliceExt};
use sea_orm::{ConnectionTrait, DbErr, QueryResult, Statement, Value};
use uuid::Uuid;

use crate::{db::Db, ids::text_hash};

/// A stored vector with its row ID.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The row ID.
    pub row: i64,
    /// The trace of the span.
    pub trace_id: Uuid,
    /// The ID of the span.
    pub id: Uuid,
    /// The start of the span, in microseconds.
    pub started_at: i64,
    /// The hash of the span's type.
    pub kind_hash: i64,
    /// The hash of the span's model.
    pub model_hash: Option<i64>,
    /// The hash of the name of the embedding model.
    pub embedding_hash: i64,
    /// The vector in its stored form.
    pub vector: Vec<u8>,
}

/// Returns the components of a stored vector: half-precision numbers, little endian.
pub fn read_numbers(stored: &[u8]) -> Vec<f32> {
    let halves: Vec<f16> = stored.as_chunks().0.iter().map(|it| f16::from_le_bytes(*it)).collect();
    halves.to_f32_vec()
}

/// Returns up to `limit` vectors of a project in the order of their row IDs, beginning with the row `from`.
///
/// # Errors
/// Fails when the database fails.
pub async fn arrivals(
    db: &Db,
    tenant: Uuid,
    project: Uuid,
    from: i64,
    limit: usize,
) -> Result<Vec<Arrival>, DbErr> {
    let sql = format!(
        "SELECT rowid, trace_id, id, started_at, kind_hash, model_hash, embedding_model, vector FROM span_vector{} \
         WHERE tenant_id = $1 AND project_id = $2 AND rowid >= $3 ORDER BY rowid LIMIT {limit}",
        db.dialect.index_hint("ix_span_vector_arrival")
    );
    let rows = query(db, sql, vec![tenant.into(), project.into(), from.into()]).await?;
    rows.iter()
        .map(|it| {
            Ok(Arrival {
                row: it.try_get_by_index(0)?,
                trace_id: it.try_get_by_index(1)?,
                id: it.try_get_by_index(2)?,
                started_at: it.try_get_by_index(3)?,
                kind_hash: it.try_get_by_index(4)?,
                model_hash: it.try_get_by_index(5)?,
                embedding_hash: text_hash(&it.try_get_by_index::<String>(6)?),
                vector: it.try_get_by_index(7)?,
            })
        })
        .collect()
}

/// Returns the number of a project's vectors.
///
/// # Errors
/// Fails when the database fails.
pub async fn count(db: &Db, tenant: Uuid, project: Uuid) -> Result<usize, DbErr> {
    let sql = format!(
        "SELECT COUNT(*) FROM span_vector{} WHERE tenant_id = $1 AND project_id = $2",
        db.dialect.index_hint("ix_span_vector_arrival")
    );
    let rows = query(db, sql, vec![tenant.into(), project.into()]).await?;
    let count: i64 = rows.first().map_or(Ok(0), |it| it.try_get_by_index(0))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Returns the row IDs of a project's vectors, ascending.
///
/// # Errors
/// Fails when the database fails.
pub async fn rows_of(db: &Db, tenant: Uuid, project: Uuid) -> Result<Vec<i64>, DbErr> {
    let sql = format!(
        "SELECT rowid FROM span_vector{} WHERE tenant_id = $1 AND project_id = $2 ORDER BY rowid",
        db.dialect.index_hint("ix_span_vector_arrival")
    );
    let rows = query(db, sql, vec![tenant.into(), project.into()]).await?;
    rows.iter().map(|it| it.try_get_by_index(0)).collect()
}

/// Returns the vectors in these rows, with trace and span, because a row ID may have been reused for another
/// span. The IDs are one parameter, so that the statement is prepared once.
///
/// # Errors
/// Fails when the database fails.
pub async fn in_rows(db: &Db, tenant: Uuid, rows: &[i64]) -> Result<Vec<(Uuid, Uuid, Vec<u8>)>, DbErr> {
    const IN_ROWS: &str = "SELECT trace_id, id, vector FROM span_vector NOT INDEXED \
         WHERE tenant_id = $1 AND rowid IN (SELECT value FROM json_each($2))";
    let ids: Vec<String> = rows.iter().map(i64::to_string).collect();
    let ids = format!("[{}]", ids.join(","));
    let found = query(db, IN_ROWS.to_owned(), vec![tenant.into(), ids.into()]).await?;
    found
        .iter()
        .map(|it| Ok((it.try_get_by_index(0)?, it.try_get_by_index(1)?, it.try_get_by_index(2)?)))
        .collect()
}

async fn query(db: &Db, sql: String, values: Vec<Value>) -> Result<Vec<QueryResult>, DbErr> {
    db.read.query_all_raw(Statement::from_sql_and_values(db.dialect.backend(), sql, values)).await
}
