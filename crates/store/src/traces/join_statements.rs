//! The statements that join log records with spans, for both databases, inside a transaction.

use entities::{body, held_input};
use uuid::Uuid;

use super::statements::{PostgresStore, SqliteStore, WriteStatements};
use crate::bulk::{self, Bulk};

/// The statements that a join needs in addition to those that store a group.
pub(super) trait JoinStatements: WriteStatements {
    /// Returns the held input of these traces of a tenant, ordered by trace, kind and receipt. Rows beyond `max_bytes`
    /// in this order have no data.
    async fn held_input(
        &mut self,
        tenant: Uuid,
        traces: &[Uuid],
        max_bytes: i64,
    ) -> sqlx::Result<Vec<held_input::Model>>;
    /// Marks the log records with these traces and IDs as joined.
    async fn mark_joined(&mut self, tenant: Uuid, rows: &[(Uuid, Uuid)]) -> sqlx::Result<()>;
    /// Removes the events of the spans with these traces and IDs.
    async fn remove_events_of(&mut self, tenant: Uuid, spans: &[(Uuid, Uuid)]) -> sqlx::Result<()>;
    /// Removes the vectors of the spans with these keys of traces and IDs.
    async fn remove_vectors_of(&mut self, tenant: Uuid, spans: &[(i64, Uuid)]) -> sqlx::Result<()>;
    /// Returns rows with texts, locked in the order of their IDs.
    async fn lock_texts(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<body::Model>>;
    /// Removes rows with texts.
    async fn remove_texts(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<()>;
}

/// Returns the statement that reads held input; `traces` is the condition on the traces.
fn held_input_sql(traces: &str, max_bytes: &str, empty: &str) -> String {
    let columns: Vec<&str> = held_input::Model::COLUMN_NAMES.to_vec();
    let outer: Vec<String> = columns
        .iter()
        .map(|it| match *it {
            "data" => format!("CASE WHEN total <= {max_bytes} THEN data ELSE {empty} END"),
            column => column.to_owned(),
        })
        .collect();
    format!(
        "SELECT {} FROM (SELECT {}, SUM(size) OVER (ORDER BY trace_id, kind, received_at, id) AS total \
         FROM held_input WHERE tenant_id = $1 AND {traces}) x ORDER BY trace_id, kind, received_at, id",
        outer.join(","),
        columns.join(",")
    )
}

impl JoinStatements for SqliteStore<'_> {
    async fn held_input(
        &mut self,
        tenant: Uuid,
        traces: &[Uuid],
        max_bytes: i64,
    ) -> sqlx::Result<Vec<held_input::Model>> {
        let ids: Vec<Uuid> = bulk::padded(traces).collect();
        let places: Vec<String> = (3..ids.len() + 3).map(|it| format!("${it}")).collect();
        let sql = held_input_sql(&format!("trace_id IN ({})", places.join(",")), "$2", "x''");
        let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(tenant).bind(max_bytes);
        let query = ids.into_iter().fold(query, |query, id| query.bind(id));
        query.fetch_all(&mut *self.0).await?.iter().map(held_input::Model::from_sqlite).collect()
    }

    async fn mark_joined(&mut self, tenant: Uuid, rows: &[(Uuid, Uuid)]) -> sqlx::Result<()> {
        let sql = "UPDATE held_input SET joined = TRUE WHERE tenant_id = $1 AND trace_id = $2 AND id = $3";
        for (trace, id) in rows {
            sqlx::query(sql).bind(tenant).bind(trace).bind(id).execute(&mut *self.0).await?;
        }
        Ok(())
    }

    async fn remove_events_of(&mut self, tenant: Uuid, spans: &[(Uuid, Uuid)]) -> sqlx::Result<()> {
        let sql = "DELETE FROM event WHERE tenant_id = $1 AND trace_id = $2 AND span_id = $3";
        for (trace, span) in spans {
            sqlx::query(sql).bind(tenant).bind(trace).bind(span).execute(&mut *self.0).await?;
        }
        Ok(())
    }

    async fn remove_vectors_of(&mut self, tenant: Uuid, spans: &[(i64, Uuid)]) -> sqlx::Result<()> {
        let sql = "DELETE FROM span_vector WHERE tenant_id = $1 AND trace_key = $2 AND id = $3";
        for (key, span) in spans {
            sqlx::query(sql).bind(tenant).bind(key).bind(span).execute(&mut *self.0).await?;
        }
        Ok(())
    }

    async fn lock_texts(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<body::Model>> {
        self.rows(tenant, ids, |places| format!("tenant_id = ? AND id IN ({places})")).await
    }

    async fn remove_texts(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<()> {
        for id in ids {
            sqlx::query("DELETE FROM body WHERE tenant_id = $1 AND id = $2")
                .bind(tenant)
                .bind(id)
                .execute(&mut *self.0)
                .await?;
        }
        Ok(())
    }
}

impl JoinStatements for PostgresStore<'_> {
    async fn held_input(
        &mut self,
        tenant: Uuid,
        traces: &[Uuid],
        max_bytes: i64,
    ) -> sqlx::Result<Vec<held_input::Model>> {
        let sql = held_input_sql("trace_id = ANY($3)", "$2", "''::bytea");
        let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(tenant).bind(max_bytes).bind(traces);
        query.fetch_all(&mut *self.0).await?.iter().map(held_input::Model::from_postgres).collect()
    }

    async fn mark_joined(&mut self, tenant: Uuid, rows: &[(Uuid, Uuid)]) -> sqlx::Result<()> {
        let sql = "UPDATE held_input SET joined = TRUE WHERE tenant_id = $1 AND trace_id = ANY($2) AND id = ANY($3)";
        let (traces, ids) = split(rows);
        self.run(sql, tenant, traces, ids).await
    }

    async fn remove_events_of(&mut self, tenant: Uuid, spans: &[(Uuid, Uuid)]) -> sqlx::Result<()> {
        let sql = "DELETE FROM event WHERE tenant_id = $1 AND trace_id = ANY($2) AND span_id = ANY($3)";
        let (traces, ids) = split(spans);
        self.run(sql, tenant, traces, ids).await
    }

    async fn remove_vectors_of(&mut self, tenant: Uuid, spans: &[(i64, Uuid)]) -> sqlx::Result<()> {
        let sql = "DELETE FROM span_vector WHERE tenant_id = $1 AND trace_key = ANY($2) AND id = ANY($3)";
        let (keys, ids) = split(spans);
        self.run(sql, tenant, keys, ids).await
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

impl PostgresStore<'_> {
    /// Executes a statement on rows of a tenant that are selected by two lists.
    async fn run<K>(
        &mut self,
        sql: &'static str,
        tenant: Uuid,
        keys: Vec<K>,
        ids: Vec<Uuid>,
    ) -> sqlx::Result<()>
    where
        Vec<K>: for<'q> sqlx::Encode<'q, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
        K: Send,
    {
        if ids.is_empty() {
            return Ok(());
        }
        sqlx::query(sql).bind(tenant).bind(keys).bind(ids).execute(&mut *self.0).await?;
        Ok(())
    }
}

fn split<K: Copy>(rows: &[(K, Uuid)]) -> (Vec<K>, Vec<Uuid>) {
    rows.iter().copied().unzip()
}
