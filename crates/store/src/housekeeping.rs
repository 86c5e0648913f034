//! Rows that expire: finds the tenants that have expired rows, and deletes the rows.

use sea_orm::{ConnectionTrait, DbErr, Statement, Value};
use uuid::Uuid;

use crate::db::Db;

/// The unit of a column with times since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Microseconds, as in most columns.
    Micros,
    /// Seconds.
    Seconds,
}

/// The rows of a table that expire some time after the time in a column. The table has an index on tenant and
/// column.
#[derive(Clone, Copy, Debug)]
pub struct ExpiringRows {
    /// The table.
    pub table: &'static str,
    /// The column with the time.
    pub column: &'static str,
    /// The unit of the column.
    pub unit: TimeUnit,
    /// A further condition of the rows to delete, in SQL, in which `$1` is the tenant; `TRUE` for none.
    pub condition: &'static str,
}

impl ExpiringRows {
    /// Returns the rows of a table whose column has microseconds.
    pub const fn of(table: &'static str, column: &'static str) -> Self {
        Self { table, column, unit: TimeUnit::Micros, condition: "TRUE" }
    }

    /// Returns the next tenant after `last` that has rows in the table.
    ///
    /// # Errors
    /// Fails when the database fails.
    pub async fn next_tenant(&self, db: &Db, last: Uuid) -> Result<Option<Uuid>, DbErr> {
        next_tenant(db, self.table, "", "TRUE", last).await
    }

    /// Deletes about `limit` rows with a time before `before` (microseconds). Returns their number.
    ///
    /// # Errors
    /// Fails when the database fails.
    pub async fn delete_before(&self, db: &Db, tenant: Uuid, before: i64, limit: u64) -> Result<u64, DbErr> {
        let Self { table, column, unit, condition } = self;
        let before = match unit {
            TimeUnit::Micros => before,
            TimeUnit::Seconds => before.div_euclid(1_000_000),
        };
        // The rows with the lowest times, and those with the same time as the last of them.
        let sql = format!(
            "DELETE FROM {table} WHERE tenant_id = $1 AND {column} < $2 AND {condition} AND {column} <= COALESCE((\
             SELECT {column} FROM {table} WHERE tenant_id = $1 AND {column} < $2 AND {condition} \
             ORDER BY {column} LIMIT 1 OFFSET $3), $2)"
        );
        let offset = i64::try_from(limit.saturating_sub(1)).unwrap_or(i64::MAX);
        let values = [tenant.into(), before.into(), offset.into()];
        let done = db.write.execute_raw(statement(db, &sql, values)).await?;
        Ok(done.rows_affected())
    }
}

/// Returns the next tenant after `last` that has rows with this condition, by one look-up in the index that the
/// hint names.
pub async fn next_tenant(
    db: &Db,
    table: &str,
    index_hint: &str,
    condition: &str,
    last: Uuid,
) -> Result<Option<Uuid>, DbErr> {
    let sql = format!(
        "SELECT tenant_id FROM {table}{index_hint} WHERE tenant_id > $1 AND {condition} ORDER BY tenant_id LIMIT 1"
    );
    let row = db.current().query_one_raw(statement(db, &sql, [last.into()])).await?;
    row.map(|it| it.try_get_by_index(0)).transpose()
}

fn statement<const N: usize>(db: &Db, sql: &str, values: [Value; N]) -> Statement {
    Statement::from_sql_and_values(db.dialect.backend(), sql, values)
}
