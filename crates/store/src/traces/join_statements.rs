//! The statements that join log records with spans, for both databases, inside a transaction.

use entities::{
    body,
    held_input::{self, HeldKind},
};
use sqlx::{Decode, FromRow, Row, Type};
use uuid::Uuid;

use super::statements::{
    MAX_ROWS_OF_STATEMENT, PostgresStore, SqliteStore, WriteStatements, is_any_of, placeholders,
};
use crate::bulk::{self, Bulk};

/// The statements that a join needs in addition to those that store a group.
pub(super) trait JoinStatements: WriteStatements {
    /// Returns the size of each row of held input of these traces.
    async fn held_sizes(&mut self, tenant: Uuid, traces: &[Uuid]) -> sqlx::Result<Vec<HeldSize>>;
    /// Returns the held input of these traces, in any order.
    async fn held_input(&mut self, tenant: Uuid, traces: &[Uuid]) -> sqlx::Result<Vec<held_input::Model>>;
    /// Removes held input with these traces and IDs.
    async fn remove_held(&mut self, tenant: Uuid, rows: &[(Uuid, Uuid)]) -> sqlx::Result<()>;
    /// Removes the events of the spans with these traces and IDs.
    async fn remove_events_of(&mut self, tenant: Uuid, spans: &[(Uuid, Uuid)]) -> sqlx::Result<()>;
    /// Removes the vectors of the spans with these keys of traces and IDs.
    async fn remove_vectors_of(&mut self, tenant: Uuid, spans: &[(i64, Uuid)]) -> sqlx::Result<()>;
    /// Returns rows with texts, locked in the order of their IDs.
    async fn lock_texts(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<body::Model>>;
    /// Removes rows with texts.
    async fn remove_texts(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<()>;
}

/// The size of a row of held input.
pub(super) struct HeldSize {
    pub(super) trace_id: Uuid,
    /// Memory in bytes when it is decoded.
    pub(super) size: i32,
    /// Whether the row has log records that were not joined yet.
    pub(super) is_open: bool,
}

impl<R: Row> FromRow<'_, R> for HeldSize
where
    usize: sqlx::ColumnIndex<R>,
    Uuid: for<'r> Decode<'r, R::Database> + Type<R::Database>,
    i32: for<'r> Decode<'r, R::Database> + Type<R::Database>,
    bool: for<'r> Decode<'r, R::Database> + Type<R::Database>,
{
    fn from_row(row: &R) -> sqlx::Result<Self> {
        Ok(Self { trace_id: row.try_get(0)?, size: row.try_get(1)?, is_open: row.try_get(2)? })
    }
}

fn held_sizes_sql(traces: &str) -> String {
    let log_records = HeldKind::LogRecords.code();
    format!(
        "SELECT trace_id, size, kind = {log_records} AND NOT joined FROM held_input WHERE tenant_id = $1 AND {traces}"
    )
}

fn held_input_sql(traces: &str) -> String {
    format!(
        "SELECT {} FROM held_input WHERE tenant_id = $1 AND {traces}",
        held_input::Model::COLUMN_NAMES.join(",")
    )
}

impl JoinStatements for SqliteStore<'_> {
    async fn held_sizes(&mut self, tenant: Uuid, traces: &[Uuid]) -> sqlx::Result<Vec<HeldSize>> {
        let ids: Vec<Uuid> = bulk::padded(traces).collect();
        let query = sqlx::query_as(sqlx::AssertSqlSafe(held_sizes_sql(&is_any_of(&ids)))).bind(tenant);
        ids.into_iter().fold(query, |query, id| query.bind(id)).fetch_all(&mut *self.0).await
    }

    async fn held_input(&mut self, tenant: Uuid, traces: &[Uuid]) -> sqlx::Result<Vec<held_input::Model>> {
        if traces.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<Uuid> = bulk::padded(traces).collect();
        let query = sqlx::query(sqlx::AssertSqlSafe(held_input_sql(&is_any_of(&ids)))).bind(tenant);
        let query = ids.into_iter().fold(query, |query, id| query.bind(id));
        query.fetch_all(&mut *self.0).await?.iter().map(held_input::Model::from_sqlite).collect()
    }

    async fn remove_held(&mut self, tenant: Uuid, rows: &[(Uuid, Uuid)]) -> sqlx::Result<()> {
        self.run_on_held("DELETE FROM held_input", tenant, rows).await
    }

    async fn remove_events_of(&mut self, tenant: Uuid, spans: &[(Uuid, Uuid)]) -> sqlx::Result<()> {
        self.run_on_pairs("DELETE FROM event", ["trace_id", "span_id"], tenant, spans).await
    }

    async fn remove_vectors_of(&mut self, tenant: Uuid, spans: &[(i64, Uuid)]) -> sqlx::Result<()> {
        self.run_on_pairs("DELETE FROM span_vector", ["trace_key", "id"], tenant, spans).await
    }

    async fn lock_texts(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<body::Model>> {
        self.rows(tenant, ids, |places| format!("tenant_id = ? AND id IN ({places})")).await
    }

    async fn remove_texts(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<()> {
        for chunk in ids.chunks(MAX_ROWS_OF_STATEMENT) {
            let ids: Vec<Uuid> = bulk::padded(chunk).collect();
            let sql = format!(
                "DELETE FROM body WHERE tenant_id = $1 AND id IN ({})",
                placeholders(2, ids.len(), 1)
            );
            let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(tenant);
            ids.into_iter().fold(query, |query, id| query.bind(id)).execute(&mut *self.0).await?;
        }
        Ok(())
    }
}

impl JoinStatements for PostgresStore<'_> {
    async fn held_sizes(&mut self, tenant: Uuid, traces: &[Uuid]) -> sqlx::Result<Vec<HeldSize>> {
        let sql = held_sizes_sql("trace_id = ANY($2)");
        sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(tenant).bind(traces).fetch_all(&mut *self.0).await
    }

    async fn held_input(&mut self, tenant: Uuid, traces: &[Uuid]) -> sqlx::Result<Vec<held_input::Model>> {
        if traces.is_empty() {
            return Ok(Vec::new());
        }
        let query =
            sqlx::query(sqlx::AssertSqlSafe(held_input_sql("trace_id = ANY($2)"))).bind(tenant).bind(traces);
        query.fetch_all(&mut *self.0).await?.iter().map(held_input::Model::from_postgres).collect()
    }

    async fn remove_held(&mut self, tenant: Uuid, rows: &[(Uuid, Uuid)]) -> sqlx::Result<()> {
        let (columns, types) = (["trace_id", "id"], ["uuid", "uuid"]);
        self.run_on_pairs("DELETE FROM held_input", columns, types, tenant, rows).await
    }

    async fn remove_events_of(&mut self, tenant: Uuid, spans: &[(Uuid, Uuid)]) -> sqlx::Result<()> {
        let (columns, types) = (["trace_id", "span_id"], ["uuid", "uuid"]);
        self.run_on_pairs("DELETE FROM event", columns, types, tenant, spans).await
    }

    async fn remove_vectors_of(&mut self, tenant: Uuid, spans: &[(i64, Uuid)]) -> sqlx::Result<()> {
        let (columns, types) = (["trace_key", "id"], ["bigint", "uuid"]);
        self.run_on_pairs("DELETE FROM span_vector", columns, types, tenant, spans).await
    }

    async fn lock_texts(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<body::Model>> {
        let sql = format!(
            "SELECT {} FROM body WHERE tenant_id = $1 AND id = ANY($2) ORDER BY id FOR UPDATE",
            body::Model::COLUMN_NAMES.join(",")
        );
        let rows =
            sqlx::query(sqlx::AssertSqlSafe(sql)).bind(tenant).bind(ids).fetch_all(&mut *self.0).await?;
        rows.iter().map(body::Model::from_postgres).collect()
    }

    async fn remove_texts(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let sql = "DELETE FROM body WHERE tenant_id = $1 AND id = ANY($2)";
        sqlx::query(sql).bind(tenant).bind(ids).execute(&mut *self.0).await?;
        Ok(())
    }
}
