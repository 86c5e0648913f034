//! Measures tables and indexes.
//!
//! Statements are SQL, because they read the catalogs of the databases.

use entities::dialect::Dialect;
use sea_orm::{ConnectionTrait, DbErr, QueryResult, Statement, Value};
use serde::Serialize;

use crate::db::Db;

/// Size of a PostgreSQL table in bytes up to which its rows are counted; the rows of a larger one are
/// estimated.
const MAX_COUNTED_TABLE_BYTES: i64 = 64 * 1024 * 1024;

/// The size of the database.
#[derive(Debug, PartialEq, Serialize)]
pub struct Sizes {
    /// `sqlite` or `postgres`.
    pub database: &'static str,
    /// Total size in bytes.
    pub bytes: i64,
    /// Bytes of the file that are free for new rows; none on PostgreSQL, where each table has its own.
    pub free_bytes: Option<i64>,
    /// The tables, the largest first.
    pub tables: Vec<TableSize>,
}

/// The size of a table.
#[derive(Debug, PartialEq, Serialize)]
pub struct TableSize {
    /// The name of the table.
    pub name: String,
    /// The number of rows.
    pub rows: i64,
    /// Whether the rows were counted, not estimated.
    pub rows_exact: bool,
    /// Size of the rows in bytes, with long values.
    pub bytes: i64,
    /// Size of all indexes in bytes.
    pub index_bytes: i64,
    /// The indexes, the largest first.
    pub indexes: Vec<IndexSize>,
}

/// The size of an index.
#[derive(Debug, PartialEq, Serialize)]
pub struct IndexSize {
    /// The name of the index.
    pub name: String,
    /// The size in bytes.
    pub bytes: i64,
}

/// Measures the database. On SQLite this reads the whole file once.
///
/// # Errors
/// Fails when the database fails.
pub async fn measure(db: &Db) -> Result<Sizes, DbErr> {
    let mut sizes = match db.dialect {
        Dialect::Sqlite => sqlite(db).await?,
        Dialect::Postgres => postgres(db).await?,
    };
    for table in &mut sizes.tables {
        table.indexes.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
        table.index_bytes = table.indexes.iter().map(|it| it.bytes).sum();
    }
    sizes.tables.sort_by_key(|it| (-(it.bytes + it.index_bytes), it.name.clone()));
    Ok(sizes)
}

async fn sqlite(db: &Db) -> Result<Sizes, DbErr> {
    let sizes = "SELECT (SELECT page_count FROM pragma_page_count) * s.page_size, \
        (SELECT freelist_count FROM pragma_freelist_count) * s.page_size FROM pragma_page_size s";
    let (bytes, free) = query(db, sizes, [], |row| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?)))
        .await?
        .pop()
        .unwrap_or_default();
    let pages = "SELECT s.type, s.name, s.tbl_name, COALESCE(d.pgsize, 0) FROM sqlite_schema s \
        LEFT JOIN dbstat d ON d.name = s.name AND d.aggregate = TRUE \
        WHERE s.type IN ('table', 'index') AND s.tbl_name NOT LIKE 'sqlite@_%' ESCAPE '@'";
    let parts = query(db, pages, [], |row| {
        let kind: String = row.try_get_by_index(0)?;
        let (name, table): (String, String) = (row.try_get_by_index(1)?, row.try_get_by_index(2)?);
        Ok((kind == "table", name, table, row.try_get_by_index(3)?))
    })
    .await?;
    let mut tables = Vec::new();
    for (_, name, _, bytes) in parts.iter().filter(|it| it.0) {
        let indexes = parts.iter().filter(|it| !it.0 && it.2 == *name);
        let indexes = indexes.map(|it| IndexSize { name: it.1.clone(), bytes: it.3 }).collect();
        let rows = count(db, name).await?;
        tables.push(TableSize {
            name: name.clone(),
            rows,
            rows_exact: true,
            bytes: *bytes,
            index_bytes: 0,
            indexes,
        });
    }
    Ok(Sizes { database: "sqlite", bytes, free_bytes: Some(free), tables })
}

async fn postgres(db: &Db) -> Result<Sizes, DbErr> {
    let all = "SELECT pg_database_size(current_database())";
    let bytes = query(db, all, [], |row| row.try_get_by_index(0)).await?.pop().unwrap_or_default();
    let tables = "SELECT c.relname::text, pg_table_size(c.oid), GREATEST(c.reltuples, 0)::bigint FROM pg_class c \
        WHERE c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace";
    let found = query(db, tables, [], |row| {
        Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?, row.try_get_by_index(2)?))
    })
    .await?;
    let mut tables = Vec::new();
    for (name, bytes, estimated) in found {
        let name: String = name;
        let sql = "SELECT i.relname::text, pg_relation_size(i.oid) FROM pg_index x \
            JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid \
            WHERE t.relname = $1 AND t.relnamespace = current_schema()::regnamespace";
        let indexes = query(db, sql, [name.as_str().into()], |row| {
            Ok(IndexSize { name: row.try_get_by_index(0)?, bytes: row.try_get_by_index(1)? })
        })
        .await?;
        let rows_exact = bytes <= MAX_COUNTED_TABLE_BYTES;
        let rows = if rows_exact { count(db, &name).await? } else { estimated };
        tables.push(TableSize { name, rows, rows_exact, bytes, index_bytes: 0, indexes });
    }
    Ok(Sizes { database: "postgres", bytes, free_bytes: None, tables })
}

async fn count(db: &Db, table: &str) -> Result<i64, DbErr> {
    // The name comes from the database's own catalogue, so it needs no escaping.
    let sql = format!("SELECT COUNT(*) FROM \"{table}\"");
    Ok(query(db, &sql, [], |row| row.try_get_by_index(0)).await?.pop().unwrap_or_default())
}

async fn query<T, const N: usize>(
    db: &Db,
    sql: &str,
    values: [Value; N],
    read: impl Fn(&QueryResult) -> Result<T, DbErr>,
) -> Result<Vec<T>, DbErr> {
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
    db.read.query_all_raw(statement).await?.iter().map(read).collect()
}
