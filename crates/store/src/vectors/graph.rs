//! Which vectors the graph of PostgreSQL's index holds.
//!
//! Putting a vector into it takes a millisecond, thirty times as long as storing it, and pays off only
//! where vectors are too many to go through. So they are put there later, and only those of tenants
//! that have that many.

use sea_orm::{ConnectionTrait, DbErr, Statement};
use uuid::Uuid;

use super::super::Db;

const NEXT: &str = "SELECT 1 FROM span_vector WHERE tenant_id = $1 LIMIT 1 OFFSET $2";

/// Those that another process has taken are left to it, as are those that are being removed.
const PUT: &str = "WITH next AS MATERIALIZED (SELECT trace_id, id FROM span_vector \
     WHERE tenant_id = $1 AND NOT indexed ORDER BY project_id, started_at LIMIT $2 FOR UPDATE SKIP LOCKED) \
     UPDATE span_vector v SET indexed = true FROM next \
     WHERE v.tenant_id = $1 AND v.trace_id = next.trace_id AND v.id = next.id";

/// Whether a tenant has more vectors than `few`.
///
/// # Errors
/// Fails when the database fails.
pub async fn are_more_than(db: &Db, tenant: Uuid, few: u32) -> Result<bool, DbErr> {
    let values = [tenant.into(), i64::from(few).into()];
    let statement = Statement::from_sql_and_values(db.dialect.backend(), NEXT, values);
    Ok(db.current().query_one_raw(statement).await?.is_some())
}

/// Puts some `limit` vectors of a tenant into the graph, and answers how many.
///
/// # Errors
/// Fails when the database fails.
pub async fn put_into_graph(db: &Db, tenant: Uuid, limit: u64) -> Result<u64, DbErr> {
    let values = [tenant.into(), i64::try_from(limit).unwrap_or(i64::MAX).into()];
    let statement = Statement::from_sql_and_values(db.dialect.backend(), PUT, values);
    Ok(db.write.execute_raw(statement).await?.rows_affected())
}
