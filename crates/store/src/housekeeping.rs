//! Rows with a limited lifetime: finds tenants that have such rows, and removes them.

use entities::dialect::Dialect;
use sea_orm::{ConnectionTrait, DbErr, Statement, Value};
use uuid::Uuid;

use crate::db::Db;

/// A kind of rows with a limited lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Traces of projects with a retention period.
    Traces,
    /// Responses stored for idempotency keys.
    Answers,
    /// Request counts per minute.
    Windows,
    /// Traces that are not counted in the metrics yet.
    Unmeasured,
    /// Vectors that are not in the graph of an index yet.
    Unindexed,
    /// Bulk runs of evaluators.
    BulkRuns,
}

impl Kept {
    /// All kinds.
    pub const ALL: &'static [Self] =
        &[Self::Traces, Self::Answers, Self::Windows, Self::Unmeasured, Self::Unindexed, Self::BulkRuns];

    /// Returns the statement that selects the next tenant after `$1` with rows of this kind, by one index
    /// look-up.
    fn next(self, dialect: Dialect) -> String {
        let statement = match self {
            Self::Traces => {
                "SELECT tenant_id FROM project WHERE tenant_id > $1 AND retention_days IS NOT NULL ORDER BY tenant_id LIMIT 1"
            }
            Self::Answers => {
                "SELECT tenant_id FROM idempotency WHERE tenant_id > $1 ORDER BY tenant_id LIMIT 1"
            }
            Self::Windows => {
                "SELECT tenant_id FROM rate_window WHERE tenant_id > $1 ORDER BY tenant_id LIMIT 1"
            }
            Self::Unmeasured => {
                return format!(
                    "SELECT tenant_id FROM trace{} WHERE tenant_id > $1 AND NOT measured ORDER BY tenant_id LIMIT 1",
                    dialect.index_hint("ix_trace_unmeasured")
                );
            }
            Self::Unindexed => {
                "SELECT tenant_id FROM span_vector WHERE tenant_id > $1 AND NOT indexed ORDER BY tenant_id LIMIT 1"
            }
            Self::BulkRuns => {
                "SELECT tenant_id FROM eval_bulk WHERE tenant_id > $1 ORDER BY tenant_id LIMIT 1"
            }
        };
        statement.to_owned()
    }
}

/// Returns the next tenant after `last` that has rows of this kind.
///
/// # Errors
/// Fails when the database fails.
pub async fn next_tenant(db: &Db, kept: Kept, last: Uuid) -> Result<Option<Uuid>, DbErr> {
    if kept == Kept::Unindexed && !db.finds_nearest() {
        return Ok(None);
    }
    let row = db.current().query_one_raw(statement(db, &kept.next(db.dialect), [last.into()])).await?;
    row.map(|it| it.try_get_by_index(0)).transpose()
}

/// Removes about `limit` responses that expired before `now` (microseconds). Returns their number.
///
/// # Errors
/// Fails when the database fails.
pub async fn forget_answers(db: &Db, tenant: Uuid, now: i64, limit: u64) -> Result<u64, DbErr> {
    remove(db, "idempotency", "expires_at", tenant, now, limit).await
}

/// Removes about `limit` windows that began before `before` (seconds). Returns their number.
///
/// # Errors
/// Fails when the database fails.
pub async fn forget_windows(db: &Db, tenant: Uuid, before: i64, limit: u64) -> Result<u64, DbErr> {
    remove(db, "rate_window", "starts_at", tenant, before, limit).await
}

/// Removes about `limit` bulk runs that began before `before` (microseconds) and have no waiting evaluations,
/// which need the run's options. Returns their number.
///
/// # Errors
/// Fails when the database fails.
pub async fn forget_bulk_runs(db: &Db, tenant: Uuid, before: i64, limit: u64) -> Result<u64, DbErr> {
    let sql = "DELETE FROM eval_bulk WHERE tenant_id = $1 AND id IN (\
         SELECT b.id FROM eval_bulk b WHERE b.tenant_id = $1 AND b.created_at < $2 AND b.filled \
         AND NOT EXISTS (SELECT 1 FROM evaluation e WHERE e.tenant_id = $1 AND e.bulk_id = b.id \
         AND e.status IN ('pending', 'running')) LIMIT $3)";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let done = db.write.execute_raw(statement(db, sql, [tenant.into(), before.into(), limit.into()])).await?;
    Ok(done.rows_affected())
}

/// Removes the `limit` rows with the lowest `column`, and those with the same value as the last of them.
async fn remove(
    db: &Db,
    table: &str,
    column: &str,
    tenant: Uuid,
    before: i64,
    limit: u64,
) -> Result<u64, DbErr> {
    let sql = format!(
        "DELETE FROM {table} WHERE tenant_id = $1 AND {column} < $2 AND {column} <= COALESCE((\
         SELECT {column} FROM {table} WHERE tenant_id = $1 AND {column} < $2 ORDER BY {column} LIMIT 1 OFFSET $3), $2)"
    );
    let offset = i64::try_from(limit.saturating_sub(1)).unwrap_or(i64::MAX);
    let values = [tenant.into(), before.into(), offset.into()];
    let done = db.write.execute_raw(statement(db, &sql, values)).await?;
    Ok(done.rows_affected())
}

fn statement<const N: usize>(db: &Db, sql: &str, values: [Value; N]) -> Statement {
    Statement::from_sql_and_values(db.dialect.backend(), sql, values)
}
