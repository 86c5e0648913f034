//! Stores vectors of spans.
//!
//! Statements are SQL, because vectors are written in bulk and their column has another type on each
//! database.

use entities::{dialect::Dialect, span};
use pgvector::Bit;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{SpanToEmbed, StoredVector, UnitVector};
use crate::{
    bulk::{Bulk, STATEMENT_ROWS, bulk_rows},
    db::Db,
    ids::text_hash,
    row_text::label,
};

/// A row of `span_vector`, with its vector.
#[derive(Clone, Debug)]
pub struct VectorRow {
    tenant_id: Uuid,
    trace_key: i64,
    trace_id: Uuid,
    id: Uuid,
    project_id: Uuid,
    started_at: i64,
    kind_hash: i64,
    model_hash: Option<i64>,
    embedding_model: String,
    vector: StoredVector,
}

impl VectorRow {
    /// Returns the row for a span of a trace in `project`. `embedding_model` computed the vector; it is empty
    /// if the vector was sent with the span.
    pub fn of(span: &span::Model, project: Uuid, embedding_model: &str, vector: &UnitVector) -> Self {
        Self {
            tenant_id: span.tenant_id,
            trace_key: span.trace_key,
            trace_id: span.trace_id,
            id: span.id,
            project_id: project,
            started_at: span.started_at,
            kind_hash: text_hash(&span.kind),
            model_hash: span.model.as_deref().map(text_hash),
            embedding_model: label(embedding_model),
            vector: StoredVector::of(vector),
        }
    }

    fn embedded(tenant: Uuid, span: &SpanToEmbed, embedding_model: &str, vector: &UnitVector) -> Self {
        Self {
            tenant_id: tenant,
            trace_key: span.trace_key,
            trace_id: span.trace_id,
            id: span.id,
            project_id: span.project_id,
            started_at: span.started_at,
            kind_hash: text_hash(&span.kind),
            model_hash: span.model.as_deref().map(text_hash),
            embedding_model: label(embedding_model),
            vector: StoredVector::of(vector),
        }
    }

    /// Sets the key of the trace, which is known when the trace is stored.
    pub(crate) fn set_key(&mut self, key: i64) {
        self.trace_key = key;
    }

    /// Returns the value of PostgreSQL's column `coarse`.
    fn coarse(&self) -> Bit {
        self.vector.coarse()
    }
}

bulk_rows!(VectorRow, "span_vector", key "tenant_id, trace_key, id", {
    tenant_id: "uuid", trace_key: "int8", trace_id: "uuid", id: "uuid", project_id: "uuid", started_at: "int8", kind_hash: "int8",
    model_hash: "int8", embedding_model: "text", vector: "halfvec",
}, made { coarse: "bit(1536)" });

/// Stores the vectors of these spans by `embedding_model`, in one transaction. Returns the number of inserted
/// vectors. Nothing is inserted for spans that have a vector, or whose trace was removed; a trace that was stored again has
/// another key.
///
/// # Errors
/// Fails when the database fails; nothing is stored then.
pub async fn insert(
    db: &Db,
    tenant: Uuid,
    embedding_model: &str,
    vectors: &[(SpanToEmbed, UnitVector)],
) -> sqlx::Result<usize> {
    let mut rows: Vec<VectorRow> =
        vectors.iter().map(|it| VectorRow::embedded(tenant, &it.0, embedding_model, &it.1)).collect();
    rows.sort_unstable_by_key(|it| (it.trace_key, it.id));
    let inserted = match db.dialect {
        Dialect::Sqlite => insert_sqlite(db, &rows).await?,
        Dialect::Postgres => insert_postgres(db, tenant, &rows).await?,
    };
    Ok(usize::try_from(inserted).unwrap_or(usize::MAX))
}

/// Inserts the rows of traces that are stored. The transaction writes, so no trace is removed before it ends.
async fn insert_sqlite(db: &Db, mut rows: &[VectorRow]) -> sqlx::Result<u64> {
    let mut tx = db.begin_sqlite().await?;
    let mut inserted = 0;
    while let Some(size) = STATEMENT_ROWS.into_iter().find(|it| *it <= rows.len()) {
        let (block, rest) = rows.split_at(size);
        rows = rest;
        let query = sqlx::query(AssertSqlSafe(insert_sqlite_sql(size)));
        let query = block.iter().fold(query, |query, row| row.bind_sqlite(query));
        inserted += query.execute(&mut *tx).await?.rows_affected();
    }
    tx.commit().await?;
    Ok(inserted)
}

/// Returns the statement for this number of rows.
fn insert_sqlite_sql(rows: usize) -> String {
    let columns = VectorRow::COLUMN_NAMES;
    let row = format!("({})", vec!["?"; columns.len()].join(","));
    let values: Vec<String> = (1..=columns.len()).map(|it| format!("r.column{it}")).collect();
    format!(
        "INSERT INTO {} ({}) SELECT {} FROM (VALUES {}) r WHERE EXISTS (SELECT 1 FROM trace t \
         WHERE t.tenant_id = r.column1 AND t.key = r.column2 AND t.id = r.column3) ON CONFLICT DO NOTHING",
        VectorRow::TABLE_NAME,
        columns.join(","),
        values.join(","),
        vec![row; rows].join(","),
    )
}

/// Inserts rows like [`insert_sqlite`]. Locks the traces first, so that they are not removed meanwhile. All writers lock
/// traces in the same order, and insert vectors in the same order.
async fn insert_postgres(db: &Db, tenant: Uuid, rows: &[VectorRow]) -> sqlx::Result<u64> {
    let mut traces: Vec<i64> = rows.iter().map(|it| it.trace_key).collect();
    traces.dedup();
    let mut tx = db.begin_postgres().await?;
    sqlx::query("SELECT FROM trace WHERE tenant_id = $1 AND key = ANY($2) ORDER BY id FOR SHARE")
        .bind(tenant)
        .bind(traces)
        .execute(&mut *tx)
        .await?;
    let rows: Vec<&VectorRow> = rows.iter().collect();
    let inserted = VectorRow::bind_postgres(&rows, sqlx::query(AssertSqlSafe(insert_postgres_sql())))
        .bind(tenant)
        .execute(&mut *tx)
        .await?
        .rows_affected();
    tx.commit().await?;
    Ok(inserted)
}

/// Returns the statement whose parameters are an array for each column, and the tenant.
fn insert_postgres_sql() -> String {
    let stored =
        || VectorRow::COLUMN_NAMES.iter().zip(VectorRow::COLUMN_TYPES).map(|(name, kind)| (*name, *kind));
    let columns: Vec<(&str, &str)> = stored().chain(VectorRow::COMPUTED_COLUMNS.iter().copied()).collect();
    let names: Vec<&str> = columns.iter().map(|it| it.0).collect();
    let arrays: Vec<String> =
        columns.iter().zip(1..).map(|((_, kind), n)| format!("${n}::{kind}[]")).collect();
    let (names, arrays) = (names.join(","), arrays.join(","));
    format!(
        "INSERT INTO {} ({names}) SELECT {names} FROM UNNEST({arrays}) AS r ({names}) \
         WHERE EXISTS (SELECT 1 FROM trace t WHERE t.tenant_id = ${} AND t.key = r.trace_key AND t.id = r.trace_id) \
         ORDER BY r.trace_key, r.id ON CONFLICT DO NOTHING",
        VectorRow::TABLE_NAME,
        columns.len() + 1,
    )
}
