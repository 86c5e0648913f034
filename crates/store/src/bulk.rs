//! Writes and reads many rows at once, in the way that is cheapest on each database.
//!
//! Rows are read by the position of their columns. A look-up by name costs more than the rest of reading a
//! row.
//!
//! On SQLite, multi-row `VALUES` have a few fixed sizes, so that every statement is prepared once. On
//! PostgreSQL, each column is one array, so that one prepared statement serves any number of rows. Row-by-row
//! inserts cost two to four times as much on either database.

use std::fmt::Write;

use entities::{body, evaluation, event, job, metric_delta, metric_node, span, span_block, trace};
use sea_orm::{ConnectionTrait, DbErr, QueryResult, RuntimeErr, Statement, Value};
use sqlx::{
    AssertSqlSafe, PgConnection, Postgres, Sqlite, SqliteConnection,
    postgres::{PgArguments, PgRow},
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};

/// The handling of a row that is stored already, with the same identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// A conflict is an error. For keys that were just generated.
    Fail,
    /// Leaves the stored row unchanged.
    Keep,
    /// Replaces the stored row.
    Replace,
}

/// A statement on SQLite with its parameters.
pub type SqliteQuery<'q> = Query<'q, Sqlite, SqliteArguments>;
/// A statement on PostgreSQL with its parameters.
pub type PostgresQuery<'q> = Query<'q, Postgres, PgArguments>;

/// A table whose rows are written and read in bulk.
pub trait Bulk: Sized + Sync {
    /// The name of the table.
    const TABLE_NAME: &'static str;
    /// All columns of the table.
    const COLUMN_NAMES: &'static [&'static str];
    /// The PostgreSQL types of the columns.
    const COLUMN_TYPES: &'static [&'static str];
    /// Further columns that exist only on PostgreSQL and are computed from a row, with their types.
    const COMPUTED_COLUMNS: &'static [(&'static str, &'static str)];
    /// The columns that identify a row; also those that `RETURNING` returns.
    const ROW_IDENTITY: &'static str;
    /// The primary keys on SQLite and PostgreSQL, if the rows are stored by other columns.
    const PRIMARY_KEYS: Option<(&'static str, &'static str)>;
    /// Binds one row.
    fn bind_sqlite<'q>(&self, query: SqliteQuery<'q>) -> SqliteQuery<'q>;
    /// Binds one array per column.
    fn bind_postgres<'q>(rows: &[&Self], query: PostgresQuery<'q>) -> PostgresQuery<'q>;
    /// Reads a row that has the columns [`Self::COLUMN_NAMES`] in this order.
    fn from_sqlite(row: &SqliteRow) -> sqlx::Result<Self>;
    /// Reads a row like [`Self::from_sqlite`].
    fn from_postgres(row: &PgRow) -> sqlx::Result<Self>;

    /// Returns the columns for a `SELECT`, each prefixed with `alias` and a dot.
    fn select(alias: &str) -> String {
        let columns: Vec<String> = Self::COLUMN_NAMES.iter().map(|it| format!("{alias}.{it}")).collect();
        columns.join(",")
    }
}

/// Implements [`Bulk`] for a type with a field for each column.
macro_rules! bulk_rows {
    (@primary_keys) => { None };
    (@primary_keys $sqlite:literal $postgres:literal) => { Some(($sqlite, $postgres)) };
    ($model:ty, $table:literal, key $key:literal, $(stored by $sqlite:literal $postgres:literal,)? { $($column:ident: $type:literal),+ $(,)? } $(, made { $($made:ident: $made_type:literal),+ })?) => {
        impl $crate::bulk::Bulk for $model {
            const TABLE_NAME: &'static str = $table;
            const COLUMN_NAMES: &'static [&'static str] = &[$(stringify!($column)),+];
            const COLUMN_TYPES: &'static [&'static str] = &[$($type),+];
            const COMPUTED_COLUMNS: &'static [(&'static str, &'static str)] = &[$($((stringify!($made), $made_type)),+)?];
            const ROW_IDENTITY: &'static str = $key;
            const PRIMARY_KEYS: Option<(&'static str, &'static str)> =
                $crate::bulk::bulk_rows!(@primary_keys $($sqlite $postgres)?);

            fn bind_sqlite<'q>(&self, query: $crate::bulk::SqliteQuery<'q>) -> $crate::bulk::SqliteQuery<'q> {
                query$(.bind(&self.$column))+
            }

            fn bind_postgres<'q>(rows: &[&Self], query: $crate::bulk::PostgresQuery<'q>) -> $crate::bulk::PostgresQuery<'q> {
                query$(.bind(rows.iter().map(|row| &row.$column).collect::<Vec<_>>()))+
                    $($(.bind(rows.iter().map(|row| row.$made()).collect::<Vec<_>>()))+)?
            }

            fn from_sqlite(row: &sqlx::sqlite::SqliteRow) -> sqlx::Result<Self> {
                let mut indexes = 0..;
                Ok(Self { $($column: sqlx::Row::try_get_unchecked(row, indexes.next().unwrap_or_default())?),+ })
            }

            fn from_postgres(row: &sqlx::postgres::PgRow) -> sqlx::Result<Self> {
                let mut indexes = 0..;
                Ok(Self { $($column: sqlx::Row::try_get_unchecked(row, indexes.next().unwrap_or_default())?),+ })
            }
        }
    };
}
pub(crate) use bulk_rows;

bulk_rows!(trace::Model, "trace", key "tenant_id, id", stored by "key" "tenant_id, key", {
    tenant_id: "uuid", key: "int8", id: "uuid", project_id: "uuid", external_id: "text", session_id: "text", user_id: "text",
    name: "text", model: "text", error: "text", failure_types: "int2", started_at: "int8", ended_at: "int8",
    latency_ms: "int8", latency_class: "int2", prompt_tokens: "int8", completion_tokens: "int8",
    total_tokens: "int8", token_class: "int2", cost: "int8", cost_class: "int2", tags: "text", span_count: "int4",
    ready_at: "int8", ready: "bool", given: "text", digest: "bytea", body_id: "uuid", body_index: "int4",
    created_at: "int8", updated_at: "int8", measured: "bool", tokens_measured: "bool", feedback: "int2",
    cached_input_tokens: "int8", cache_write_tokens: "int8", reasoning_tokens: "int8", input_body_id: "uuid",
    input_body_index: "int4", output_body_id: "uuid", output_body_index: "int4", missing_root: "int2",
});

bulk_rows!(span::Model, "span", key "tenant_id, trace_key, id", {
    tenant_id: "uuid", trace_key: "int8", trace_id: "uuid", id: "uuid", parent_id: "uuid", name: "text", kind: "text", model: "text",
    started_at: "int8", ended_at: "int8", latency_ms: "int8", error: "text", failure: "int2", prompt_tokens: "int8",
    completion_tokens: "int8", cost: "int8", counted: "bool", cost_counted: "bool", response_hash: "int8", otel_span_id: "bytea",
    hints: "text", body_id: "uuid", body_index: "int4", created_at: "int8", cached_input_tokens: "int8",
    cache_write_tokens: "int8", reasoning_tokens: "int8", missing_texts: "int2",
});

bulk_rows!(span_block::Model, "span_block", key "tenant_id, trace_key", stored by "trace_key" "tenant_id, trace_key", {
    tenant_id: "uuid", trace_key: "int8", trace_id: "uuid", body_ids: "bytea", data: "bytea",
});

bulk_rows!(event::Model, "event", key "tenant_id, trace_id, id", {
    tenant_id: "uuid", trace_id: "uuid", id: "uuid", span_id: "uuid", message: "text", level: "text",
    metadata: "text", created_at: "int8",
});

bulk_rows!(evaluation::Model, "evaluation", key "tenant_id, id", {
    tenant_id: "uuid", id: "uuid", trace_id: "uuid", project_id: "uuid", span_id: "uuid", metric_name: "text",
    evaluator_type: "text", evaluator_version: "text", config: "text", model_tier: "text", status: "text",
    context: "text", source_action_id: "uuid", original_evaluation_id: "uuid", rule_id: "uuid", bulk_id: "uuid",
    score: "float8", label: "text", reasoning: "text", error: "text", judge_model: "text", prompt_tokens: "int8",
    completion_tokens: "int8", cost: "int8", attempts: "int4", returns: "int4", asked: "int4", quota_month: "int4",
    created_at: "int8", completed_at: "int8",
});

bulk_rows!(body::Model, "body", key "tenant_id, id", { tenant_id: "uuid", id: "uuid", data: "bytea" });

bulk_rows!(job::Model, "job", key "tenant_id, id", {
    tenant_id: "uuid", id: "uuid", lane: "text", kind: "text", payload: "text", status: "text", run_at: "int8",
    attempts: "int4", max_attempts: "int4", lease_until: "int8", fence: "int8", last_error: "text", created_at: "int8",
});

bulk_rows!(metric_delta::Model, "metric_delta", key "tenant_id, id", {
    tenant_id: "uuid", id: "uuid", data: "bytea", changes: "int4", created_at: "int8",
});

bulk_rows!(metric_node::Model, "metric_node", key "tenant_id, project_id, level, start", {
    tenant_id: "uuid", project_id: "uuid", level: "int2", start: "int8", leaf: "bool", data: "bytea",
});

/// Numbers of rows per SQLite statement. The largest stays well below the limit of 32,766 parameters.
pub(crate) const STATEMENT_ROWS: [usize; 4] = [64, 16, 4, 1];

/// Inserts all rows into SQLite.
///
/// # Errors
/// Fails when the database fails, or when a key is stored already under [`OnConflict::Fail`].
pub async fn insert_sqlite<T: Bulk>(
    connection: &mut SqliteConnection,
    rows: &[&T],
    on_conflict: OnConflict,
) -> sqlx::Result<()> {
    for (block, sql) in blocks::<T>(rows, on_conflict, false) {
        let query = block.iter().fold(sqlx::query(AssertSqlSafe(sql)), |query, row| row.bind_sqlite(query));
        query.execute(&mut *connection).await?;
    }
    Ok(())
}

/// Inserts rows like [`insert_sqlite`] with [`OnConflict::Keep`]. Returns the keys of the inserted rows, as
/// pairs of the key's last two columns.
///
/// # Errors
/// Fails when the database fails.
pub async fn insert_new_sqlite<T: Bulk>(
    connection: &mut SqliteConnection,
    rows: &[&T],
) -> sqlx::Result<Vec<SqliteRow>> {
    let mut inserted = Vec::with_capacity(rows.len());
    for (block, sql) in blocks::<T>(rows, OnConflict::Keep, true) {
        let query = block.iter().fold(sqlx::query(AssertSqlSafe(sql)), |query, row| row.bind_sqlite(query));
        inserted.append(&mut query.fetch_all(&mut *connection).await?);
    }
    Ok(inserted)
}

/// Inserts all rows into PostgreSQL with one statement.
///
/// # Errors
/// Like [`insert_sqlite`].
pub async fn insert_postgres<T: Bulk>(
    connection: &mut PgConnection,
    rows: &[&T],
    on_conflict: OnConflict,
) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let sql = postgres_sql::<T>(on_conflict, false);
    T::bind_postgres(rows, sqlx::query(AssertSqlSafe(sql))).execute(connection).await?;
    Ok(())
}

/// Inserts rows into PostgreSQL like [`insert_new_sqlite`].
///
/// # Errors
/// Fails when the database fails.
pub async fn insert_new_postgres<T: Bulk>(
    connection: &mut PgConnection,
    rows: &[&T],
) -> sqlx::Result<Vec<PgRow>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let sql = postgres_sql::<T>(OnConflict::Keep, true);
    T::bind_postgres(rows, sqlx::query(AssertSqlSafe(sql))).fetch_all(connection).await
}

/// Reads rows with a statement that selects [`Bulk::COLUMN_NAMES`] in this order.
///
/// # Errors
/// Fails when the database fails.
pub async fn fetch<T: Bulk>(
    db: &impl ConnectionTrait,
    sql: String,
    values: Vec<Value>,
) -> Result<Vec<T>, DbErr> {
    let statement = Statement::from_sql_and_values(db.get_database_backend(), sql, values);
    db.query_all_raw(statement).await?.iter().map(decode).collect()
}

/// Decodes a row with the columns [`Bulk::COLUMN_NAMES`] in this order.
///
/// # Errors
/// Fails when a value has another type.
pub fn decode<T: Bulk>(row: &QueryResult) -> Result<T, DbErr> {
    let decoded = match (row.try_as_sqlite_row(), row.try_as_pg_row()) {
        (Some(row), _) => T::from_sqlite(row),
        (_, Some(row)) => T::from_postgres(row),
        (None, None) => Err(sqlx::Error::RowNotFound),
    };
    decoded.map_err(|it| DbErr::Query(RuntimeErr::SqlxError(it.into())))
}

/// Adds IDs or keys to the values of a statement, padded like [`padded`]. Returns their comma-separated placeholders.
pub fn add_placeholders<T: Copy + Default + Into<Value>>(values: &mut Vec<Value>, ids: &[T]) -> String {
    let first = values.len() + 1;
    values.extend(padded(ids).map(Into::into));
    let places: Vec<String> = (first..=values.len()).map(|it| format!("${it}")).collect();
    places.join(",")
}

/// Returns the IDs or keys, with the last one repeated up to a power of four, so that few statements differ and are
/// prepared once.
pub fn padded<T: Copy + Default>(ids: &[T]) -> impl Iterator<Item = T> {
    let mut count = 1;
    while count < ids.len() {
        count *= 4;
    }
    let last = ids.last().copied().unwrap_or_default();
    ids.iter().copied().chain(std::iter::repeat(last)).take(count)
}

/// Divides the rows into blocks of the fixed sizes, each with its statement.
fn blocks<'a, 'r, T: Bulk>(
    mut rows: &'a [&'r T],
    on_conflict: OnConflict,
    returning: bool,
) -> impl Iterator<Item = (&'a [&'r T], String)> {
    std::iter::from_fn(move || {
        let size = STATEMENT_ROWS.into_iter().find(|it| *it <= rows.len())?;
        let (block, rest) = rows.split_at(size);
        rows = rest;
        Some((block, sqlite_sql::<T>(size, on_conflict, returning)))
    })
}

fn sqlite_sql<T: Bulk>(rows: usize, on_conflict: OnConflict, returning: bool) -> String {
    let row = format!("({})", vec!["?"; T::COLUMN_NAMES.len()].join(","));
    let mut sql = format!(
        "INSERT INTO {} ({}) VALUES {}",
        T::TABLE_NAME,
        T::COLUMN_NAMES.join(","),
        vec![row; rows].join(",")
    );
    finish::<T>(&mut sql, T::PRIMARY_KEYS.map(|it| it.0), on_conflict, returning);
    sql
}

fn postgres_sql<T: Bulk>(on_conflict: OnConflict, returning: bool) -> String {
    let made = |of: fn(&(&'static str, &'static str)) -> &'static str| T::COMPUTED_COLUMNS.iter().map(of);
    let columns: Vec<&str> = T::COLUMN_NAMES.iter().copied().chain(made(|it| it.0)).collect();
    let mut sql = format!("INSERT INTO {} ({}) SELECT * FROM UNNEST(", T::TABLE_NAME, columns.join(","));
    for (i, kind) in T::COLUMN_TYPES.iter().copied().chain(made(|it| it.1)).enumerate() {
        let comma = if i == 0 { "" } else { "," };
        // Writing to a `String` cannot fail.
        _ = write!(sql, "{comma}${}::{kind}[]", i + 1);
    }
    sql.push(')');
    finish::<T>(&mut sql, T::PRIMARY_KEYS.map(|it| it.1), on_conflict, returning);
    sql
}

/// Adds the clauses after the rows. `primary_key` is set if it is not [`Bulk::ROW_IDENTITY`].
fn finish<T: Bulk>(sql: &mut String, primary_key: Option<&str>, on_conflict: OnConflict, returning: bool) {
    match on_conflict {
        OnConflict::Fail => {}
        // A generated key that is in use is not a row that is stored already.
        OnConflict::Keep if primary_key.is_some() => {
            _ = write!(sql, " ON CONFLICT ({}) DO NOTHING", T::ROW_IDENTITY);
        }
        OnConflict::Keep => sql.push_str(" ON CONFLICT DO NOTHING"),
        OnConflict::Replace => {
            let target = primary_key.unwrap_or(T::ROW_IDENTITY);
            let key: Vec<&str> = T::ROW_IDENTITY.split(", ").chain(target.split(", ")).collect();
            let set: Vec<String> = T::COLUMN_NAMES
                .iter()
                .filter(|it| !key.contains(it))
                .map(|it| format!("{it}=excluded.{it}"))
                .collect();
            _ = write!(sql, " ON CONFLICT ({target}) DO UPDATE SET {}", set.join(","));
        }
    }
    if returning {
        _ = write!(sql, " RETURNING {}", T::ROW_IDENTITY);
    }
}
