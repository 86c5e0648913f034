//! The statements that store traces, for both databases, inside a transaction.
//!
//! Statements are SQL, because rows are written in bulk, by the functions of `bulk`.

use std::collections::HashSet;

use entities::{dialect::Dialect, held_input::HeldKind, span, span_block, trace};
use sqlx::{Database, Decode, Encode, FromRow, IntoArguments, Row, Sqlite, Type, query::QueryScalar};
use uuid::Uuid;

use crate::{
    bulk::{self, Bulk, OnConflict},
    held_input::{MAX_PAIRS, joined_with_pairs},
    quotas::{self, Quota},
    trace_ids,
};

/// The IDs of a tenant and a trace.
pub(super) type Key = (Uuid, Uuid);

/// The key of a trace and the ID of a span.
pub(super) type SpanKey = (i64, Uuid);

/// Maximum number of rows that one statement of SQLite changes by their IDs.
pub(super) const MAX_ROWS_OF_STATEMENT: usize = 256;

/// Number of IDs that one statement on SQLite looks up.
const IDS_PER_STATEMENT: usize = 64;

const REMOVE_SPAN_BLOCK: &str = "DELETE FROM span_block WHERE tenant_id = $1 AND trace_key = $2";

const MARK_JOINED: &str = "UPDATE held_input SET joined = TRUE";

const COUNT_SPANS: &str = "SELECT COUNT(*) FROM span WHERE tenant_id = $1 AND trace_key = $2";

/// The statements that storing a group needs, for both databases.
pub(super) trait WriteStatements {
    async fn insert<T: Bulk>(&mut self, rows: &[&T], on_conflict: OnConflict) -> sqlx::Result<()>;
    /// Inserts traces whose ID is not stored. Returns those that were inserted.
    async fn insert_new_traces(&mut self, rows: &[&trace::Model]) -> sqlx::Result<HashSet<Key>>;
    /// Inserts spans that are not stored into `span`. Returns those that were inserted.
    async fn insert_new_spans(&mut self, rows: &[&span::Model]) -> sqlx::Result<HashSet<SpanKey>>;
    /// Returns the stored rows of these traces of one tenant, locked.
    async fn lock_traces(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<trace::Model>>;
    /// Returns all rows of `span` of the traces of one tenant with these keys.
    async fn spans_of(&mut self, tenant: Uuid, keys: &[i64]) -> sqlx::Result<Vec<span::Model>>;
    /// Returns the span blocks of the traces of one tenant with these keys.
    async fn span_blocks(&mut self, tenant: Uuid, keys: &[i64]) -> sqlx::Result<Vec<span_block::Model>>;
    /// Removes the span block of the trace with this key.
    async fn remove_span_block(&mut self, tenant: Uuid, key: i64) -> sqlx::Result<()>;
    /// Returns the number of spans of the trace with this key that are rows of `span`.
    async fn count_spans(&mut self, tenant: Uuid, key: i64) -> sqlx::Result<i64>;
    /// Returns the IDs in `ids` that belong to stored traces of the tenant.
    async fn known_traces(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<Uuid>>;
    /// Marks the log records with these traces and IDs as joined.
    async fn mark_joined(&mut self, tenant: Uuid, rows: &[(Uuid, Uuid)]) -> sqlx::Result<()>;
    /// Returns those of these traces that have log records that were not joined.
    async fn traces_with_open_records(&mut self, tenant: Uuid, traces: &[Uuid]) -> sqlx::Result<Vec<Uuid>>;
    /// Adds to the number of traces that a tenant stored in a month. Returns the sum over all slots.
    async fn use_traces(&mut self, tenant: Uuid, month: i32, slot: i16, more: i64) -> sqlx::Result<i64>;
}

/// Runs the statements inside a SQLite transaction.
pub(super) struct SqliteStore<'a>(pub(super) &'a mut sqlx::SqliteConnection);

/// Runs the statements inside a PostgreSQL transaction.
pub(super) struct PostgresStore<'a>(pub(super) &'a mut sqlx::PgConnection);

fn open_records_sql(traces: &str) -> String {
    let log_records = HeldKind::LogRecords.code();
    format!(
        "SELECT DISTINCT trace_id FROM held_input \
         WHERE tenant_id = $1 AND {traces} AND kind = {log_records} AND NOT joined"
    )
}

/// Returns the condition on a list of traces for SQLite. Its placeholders begin with `$2`.
pub(super) fn is_any_of(traces: &[Uuid]) -> String {
    format!("trace_id IN ({})", placeholders(2, traces.len(), 1))
}

/// Returns this number of placeholders for SQLite, separated by commas. They are numbered from `first`, in steps.
pub(super) fn placeholders(first: usize, count: usize, step: usize) -> String {
    let placeholders: Vec<String> = (0..count).map(|it| format!("${}", first + it * step)).collect();
    placeholders.join(",")
}

impl SqliteStore<'_> {
    /// Returns the rows of the traces of one tenant with these keys.
    async fn of_traces<T: Bulk>(&mut self, tenant: Uuid, keys: &[i64]) -> sqlx::Result<Vec<T>> {
        let condition = |places: &str| format!("tenant_id = ? AND trace_key IN ({places})");
        self.rows(tenant, keys, condition).await
    }

    /// Returns the rows of a tenant that fulfil the condition, which is given the placeholders of some IDs or keys.
    pub(super) async fn rows<T, I>(
        &mut self,
        tenant: Uuid,
        ids: &[I],
        condition: impl Fn(&str) -> String,
    ) -> sqlx::Result<Vec<T>>
    where
        T: Bulk,
        I: Copy + Default + Send + for<'q> Encode<'q, Sqlite> + Type<Sqlite> + 'static,
    {
        let mut rows = Vec::with_capacity(ids.len());
        for ids in ids.chunks(IDS_PER_STATEMENT) {
            let ids: Vec<I> = bulk::padded(ids).collect();
            let sql = format!(
                "SELECT {} FROM {} WHERE {}",
                T::COLUMN_NAMES.join(","),
                T::TABLE_NAME,
                condition(&vec!["?"; ids.len()].join(","))
            );
            let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(tenant);
            let query = ids.into_iter().fold(query, |query, id| query.bind(id));
            for row in &query.fetch_all(&mut *self.0).await? {
                rows.push(T::from_sqlite(row)?);
            }
        }
        Ok(rows)
    }

    /// Executes a statement on held input with these traces and IDs.
    pub(super) async fn run_on_held(
        &mut self,
        sql: &str,
        tenant: Uuid,
        rows: &[(Uuid, Uuid)],
    ) -> sqlx::Result<()> {
        for rows in rows.chunks(MAX_PAIRS) {
            let rows: Vec<(Uuid, Uuid)> = bulk::padded(rows).collect();
            let sql = format!("{sql} WHERE rowid IN (SELECT held.rowid {})", joined_with_pairs(rows.len()));
            let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(tenant);
            let query = rows.into_iter().fold(query, |query, (trace, id)| query.bind(trace).bind(id));
            query.execute(&mut *self.0).await?;
        }
        Ok(())
    }

    /// Executes a statement on the rows of a tenant in which two columns have one of these pairs of values. SQLite searches
    /// by the first column, and compares the second.
    pub(super) async fn run_on_pairs<'q, K>(
        &mut self,
        sql: &str,
        [first_column, second_column]: [&str; 2],
        tenant: Uuid,
        pairs: &[(K, Uuid)],
    ) -> sqlx::Result<()>
    where
        K: Copy + Default + Send + 'q + Encode<'q, Sqlite> + Type<Sqlite>,
    {
        for chunk in pairs.chunks(MAX_ROWS_OF_STATEMENT) {
            let pairs: Vec<(K, Uuid)> = bulk::padded(chunk).collect();
            let values: Vec<String> =
                (1..=pairs.len()).map(|it| format!("(${},${})", it * 2, it * 2 + 1)).collect();
            let sql = format!(
                "{sql} WHERE tenant_id = $1 AND {first_column} IN ({}) \
                 AND ({first_column}, {second_column}) IN (VALUES {})",
                placeholders(2, pairs.len(), 2),
                values.join(",")
            );
            let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(tenant);
            let query =
                pairs.into_iter().fold(query, |query, (first, second)| query.bind(first).bind(second));
            query.execute(&mut *self.0).await?;
        }
        Ok(())
    }
}

impl PostgresStore<'_> {
    /// Returns the rows of the traces of one tenant with these keys.
    async fn of_traces<T: Bulk>(&mut self, tenant: Uuid, keys: &[i64]) -> sqlx::Result<Vec<T>> {
        let sql = format!(
            "SELECT {} FROM {} WHERE tenant_id = $1 AND trace_key = ANY($2)",
            T::COLUMN_NAMES.join(","),
            T::TABLE_NAME
        );
        let rows =
            sqlx::query(sqlx::AssertSqlSafe(sql)).bind(tenant).bind(keys).fetch_all(&mut *self.0).await?;
        rows.iter().map(T::from_postgres).collect()
    }

    /// Executes a statement on the rows of a tenant in which two columns have one of these pairs of values. `types` are the
    /// types of the columns.
    pub(super) async fn run_on_pairs<K>(
        &mut self,
        sql: &str,
        [first_column, second_column]: [&str; 2],
        types: [&str; 2],
        tenant: Uuid,
        pairs: &[(K, Uuid)],
    ) -> sqlx::Result<()>
    where
        Vec<K>: for<'q> Encode<'q, sqlx::Postgres> + Type<sqlx::Postgres>,
        K: Copy + Send,
    {
        if pairs.is_empty() {
            return Ok(());
        }
        let (first, second): (Vec<K>, Vec<Uuid>) = pairs.iter().copied().unzip();
        // Not two lists with ANY: the database would look up each value of one with each value of the other.
        let sql = format!(
            "{sql} WHERE tenant_id = $1 AND ({first_column}, {second_column}) IN \
             (SELECT * FROM unnest($2::{}[], $3::{}[]))",
            types[0], types[1]
        );
        sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(tenant)
            .bind(first)
            .bind(second)
            .execute(&mut *self.0)
            .await?;
        Ok(())
    }
}

impl WriteStatements for SqliteStore<'_> {
    async fn insert<T: Bulk>(&mut self, rows: &[&T], on_conflict: OnConflict) -> sqlx::Result<()> {
        bulk::insert_sqlite(self.0, rows, on_conflict).await
    }

    async fn insert_new_traces(&mut self, rows: &[&trace::Model]) -> sqlx::Result<HashSet<Key>> {
        let mut known = HashSet::new();
        for of_tenant in rows.chunk_by(|row, next| row.tenant_id == next.tenant_id) {
            let tenant = of_tenant[0].tenant_id;
            let ids: Vec<Uuid> = of_tenant.iter().map(|it| it.id).collect();
            known.extend(self.known_traces(tenant, &ids).await?.into_iter().map(|it| (tenant, it)));
        }
        let is_new = |row: &&&trace::Model| !known.contains(&(row.tenant_id, row.id));
        let rows: Vec<&trace::Model> = rows.iter().filter(is_new).copied().collect();
        bulk::insert_sqlite(self.0, &rows, OnConflict::Fail).await?;
        Ok(rows.into_iter().map(|it| (it.tenant_id, it.id)).collect())
    }

    async fn insert_new_spans(&mut self, rows: &[&span::Model]) -> sqlx::Result<HashSet<SpanKey>> {
        bulk::insert_new_sqlite(self.0, rows).await?.iter().map(last_two).collect()
    }

    async fn lock_traces(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<trace::Model>> {
        let keys = |places: &str| {
            format!(
                "key IN (SELECT key FROM {} WHERE tenant_id = ? AND id IN ({places}))",
                trace_ids::relation(Dialect::Sqlite)
            )
        };
        self.rows(tenant, ids, keys).await
    }

    async fn spans_of(&mut self, tenant: Uuid, keys: &[i64]) -> sqlx::Result<Vec<span::Model>> {
        self.of_traces(tenant, keys).await
    }

    async fn span_blocks(&mut self, tenant: Uuid, keys: &[i64]) -> sqlx::Result<Vec<span_block::Model>> {
        self.of_traces(tenant, keys).await
    }

    async fn remove_span_block(&mut self, tenant: Uuid, key: i64) -> sqlx::Result<()> {
        sqlx::query(REMOVE_SPAN_BLOCK).bind(tenant).bind(key).execute(&mut *self.0).await?;
        Ok(())
    }

    async fn count_spans(&mut self, tenant: Uuid, key: i64) -> sqlx::Result<i64> {
        sqlx::query_scalar(COUNT_SPANS).bind(tenant).bind(key).fetch_one(&mut *self.0).await
    }

    async fn known_traces(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<Uuid>> {
        let mut known = Vec::new();
        for ids in ids.chunks(IDS_PER_STATEMENT) {
            let ids: Vec<Uuid> = bulk::padded(ids).collect();
            let sql = format!(
                "SELECT id FROM {} WHERE tenant_id = ? AND id IN ({})",
                trace_ids::relation(Dialect::Sqlite),
                vec!["?"; ids.len()].join(",")
            );
            let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(tenant);
            let query = ids.into_iter().fold(query, |query, id| query.bind(id));
            known.append(&mut query.fetch_all(&mut *self.0).await?);
        }
        Ok(known)
    }

    async fn mark_joined(&mut self, tenant: Uuid, rows: &[(Uuid, Uuid)]) -> sqlx::Result<()> {
        self.run_on_held(MARK_JOINED, tenant, rows).await
    }

    async fn traces_with_open_records(&mut self, tenant: Uuid, traces: &[Uuid]) -> sqlx::Result<Vec<Uuid>> {
        let mut found = Vec::new();
        for chunk in traces.chunks(MAX_ROWS_OF_STATEMENT) {
            let ids: Vec<Uuid> = bulk::padded(chunk).collect();
            let query =
                sqlx::query_scalar(sqlx::AssertSqlSafe(open_records_sql(&is_any_of(&ids)))).bind(tenant);
            let query = ids.into_iter().fold(query, |query, id| query.bind(id));
            found.append(&mut query.fetch_all(&mut *self.0).await?);
        }
        Ok(found)
    }

    async fn use_traces(&mut self, tenant: Uuid, month: i32, slot: i16, more: i64) -> sqlx::Result<i64> {
        use_traces(tenant, month, slot, more).fetch_one(&mut *self.0).await
    }
}

impl WriteStatements for PostgresStore<'_> {
    async fn insert<T: Bulk>(&mut self, rows: &[&T], on_conflict: OnConflict) -> sqlx::Result<()> {
        bulk::insert_postgres(self.0, rows, on_conflict).await
    }

    async fn insert_new_traces(&mut self, rows: &[&trace::Model]) -> sqlx::Result<HashSet<Key>> {
        bulk::insert_new_postgres(self.0, rows).await?.iter().map(last_two).collect()
    }

    async fn insert_new_spans(&mut self, rows: &[&span::Model]) -> sqlx::Result<HashSet<SpanKey>> {
        bulk::insert_new_postgres(self.0, rows).await?.iter().map(last_two).collect()
    }

    async fn lock_traces(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<trace::Model>> {
        let sql = format!(
            "SELECT {} FROM trace WHERE tenant_id = $1 AND id = ANY($2) ORDER BY id FOR UPDATE",
            trace::Model::COLUMN_NAMES.join(",")
        );
        let rows =
            sqlx::query(sqlx::AssertSqlSafe(sql)).bind(tenant).bind(ids).fetch_all(&mut *self.0).await?;
        rows.iter().map(trace::Model::from_postgres).collect()
    }

    async fn spans_of(&mut self, tenant: Uuid, keys: &[i64]) -> sqlx::Result<Vec<span::Model>> {
        self.of_traces(tenant, keys).await
    }

    async fn span_blocks(&mut self, tenant: Uuid, keys: &[i64]) -> sqlx::Result<Vec<span_block::Model>> {
        self.of_traces(tenant, keys).await
    }

    async fn remove_span_block(&mut self, tenant: Uuid, key: i64) -> sqlx::Result<()> {
        sqlx::query(REMOVE_SPAN_BLOCK).bind(tenant).bind(key).execute(&mut *self.0).await?;
        Ok(())
    }

    async fn count_spans(&mut self, tenant: Uuid, key: i64) -> sqlx::Result<i64> {
        sqlx::query_scalar(COUNT_SPANS).bind(tenant).bind(key).fetch_one(&mut *self.0).await
    }

    async fn known_traces(&mut self, tenant: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<Uuid>> {
        sqlx::query_scalar("SELECT id FROM trace WHERE tenant_id = $1 AND id = ANY($2)")
            .bind(tenant)
            .bind(ids)
            .fetch_all(&mut *self.0)
            .await
    }

    async fn mark_joined(&mut self, tenant: Uuid, rows: &[(Uuid, Uuid)]) -> sqlx::Result<()> {
        let (columns, types) = (["trace_id", "id"], ["uuid", "uuid"]);
        self.run_on_pairs(MARK_JOINED, columns, types, tenant, rows).await
    }

    async fn traces_with_open_records(&mut self, tenant: Uuid, traces: &[Uuid]) -> sqlx::Result<Vec<Uuid>> {
        let sql = open_records_sql("trace_id = ANY($2)");
        sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(tenant).bind(traces).fetch_all(&mut *self.0).await
    }

    async fn use_traces(&mut self, tenant: Uuid, month: i32, slot: i16, more: i64) -> sqlx::Result<i64> {
        use_traces(tenant, month, slot, more).fetch_one(&mut *self.0).await
    }
}

/// Builds the statement that adds to the use of a month, for both databases.
fn use_traces<DB: Database>(
    tenant: Uuid,
    month: i32,
    slot: i16,
    more: i64,
) -> QueryScalar<'static, DB, i64, DB::Arguments>
where
    Uuid: for<'q> Encode<'q, DB> + Type<DB>,
    &'static str: Encode<'static, DB> + Type<DB>,
    i16: for<'q> Encode<'q, DB> + Type<DB>,
    i32: for<'q> Encode<'q, DB> + Type<DB>,
    i64: for<'q> Encode<'q, DB> + for<'r> Decode<'r, DB> + Type<DB>,
    (i64,): for<'r> FromRow<'r, DB::Row>,
    DB::Arguments: IntoArguments<DB>,
{
    sqlx::query_scalar(quotas::ADD_USE_SQL)
        .bind(tenant)
        .bind(month)
        .bind(Quota::Traces.as_str())
        .bind(slot)
        .bind(more)
}

/// Returns the last two columns of a returned key.
fn last_two<R: Row, T>(row: &R) -> sqlx::Result<(T, Uuid)>
where
    usize: sqlx::ColumnIndex<R>,
    T: for<'r> Decode<'r, R::Database> + Type<R::Database>,
    Uuid: for<'r> Decode<'r, R::Database> + Type<R::Database>,
{
    let last = row.columns().len() - 1;
    Ok((row.try_get(last - 1)?, row.try_get(last)?))
}
