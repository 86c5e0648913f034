//! Helpers that apply the schema's conventions.

use entities::dialect::Dialect;
use sea_orm_migration::prelude::*;

/// Returns the dialect of the database under migration.
pub fn dialect(manager: &SchemaManager<'_>) -> Dialect {
    Dialect::of(manager.get_database_backend())
}

/// Creates a table that is accessed by its whole primary key.
pub async fn create_clustered(
    manager: &SchemaManager<'_>,
    mut table: TableCreateStatement,
) -> Result<(), DbErr> {
    let extra = dialect(manager).clustered();
    if !extra.is_empty() {
        table.extra(extra);
    }
    manager.create_table(table).await
}

/// Creates an index, optionally over only the rows that match `condition`.
///
/// Written as text because both databases share the syntax of partial indexes.
pub async fn create_index(
    manager: &SchemaManager<'_>,
    name: &str,
    table: &str,
    columns: &str,
    condition: Option<&str>,
) -> Result<(), DbErr> {
    let filter = condition.map(|it| format!(" WHERE {it}")).unwrap_or_default();
    manager
        .get_connection()
        .execute_unprepared(&format!("CREATE INDEX {name} ON {table} ({columns}){filter}"))
        .await?;
    Ok(())
}

/// Creates an index of a table that may be large. `kind` is `INDEX` or `UNIQUE INDEX`, `of` the table
/// with its columns and condition. PostgreSQL builds it concurrently, outside of a transaction; the
/// remains of an interrupted build are dropped first.
pub async fn create_concurrently(
    manager: &SchemaManager<'_>,
    kind: &str,
    name: &str,
    of: &str,
) -> Result<(), DbErr> {
    let (connection, beside) = (manager.get_connection(), dialect(manager).concurrently());
    connection.execute_unprepared(&format!("DROP INDEX IF EXISTS {name}")).await?;
    connection.execute_unprepared(&format!("CREATE {kind}{beside} {name} ON {of}")).await?;
    Ok(())
}
