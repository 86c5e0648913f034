//! Helpers that keep the rules of the schema in one place.

use entities::dialect::Dialect;
use sea_orm_migration::prelude::*;

/// The dialect of the database under migration.
pub fn dialect(manager: &SchemaManager<'_>) -> Dialect {
    Dialect::of(manager.get_database_backend())
}

/// Creates a table whose rows are found by their whole primary key.
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

/// Creates an index, optionally over only the rows that `condition` keeps.
///
/// Written as text because partial indexes of both databases share one syntax.
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
