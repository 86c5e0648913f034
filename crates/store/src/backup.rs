//! Copies a SQLite database that a server is using.
//!
//! Statements are SQL, because they are commands of SQLite.

use sea_orm::{ConnectionTrait, DbErr, Statement};

use crate::db::Db;

/// Returns the size of a copy in bytes: the pages in use.
///
/// # Errors
/// Fails when the database fails.
pub async fn copy_bytes(db: &Db) -> Result<u64, DbErr> {
    let sql = "SELECT (p.page_count - f.freelist_count) * s.page_size \
        FROM pragma_page_count p, pragma_freelist_count f, pragma_page_size s";
    let row = db.read.query_one_raw(Statement::from_string(db.dialect.backend(), sql)).await?;
    let bytes: i64 = row.map_or(Ok(0), |it| it.try_get_by_index(0))?;
    Ok(u64::try_from(bytes).unwrap_or_default())
}

/// Copies the database, as of one moment, into a file that does not exist or is empty. Writers are not
/// blocked. The copy is not flushed to the disk.
///
/// # Errors
/// Fails when the database fails, or the file cannot be written.
pub async fn copy_into(db: &Db, path: &str) -> Result<(), DbErr> {
    let statement = Statement::from_sql_and_values(db.dialect.backend(), "VACUUM INTO $1", [path.into()]);
    db.read.execute_raw(statement).await.map(drop)
}
