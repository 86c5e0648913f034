//! Adds vectors to the HNSW graph of PostgreSQL's vector index.
//!
//! An insert into the graph takes a millisecond, thirty times as long as storing the vector, and pays off
//! only when there are too many vectors to scan. Vectors are therefore added to the graph later, and only for
//! tenants with that many vectors.
//!
//! The statement is SQL, because sea-orm has no update of rows that a locking subquery selects.

use sea_orm::{ConnectionTrait, DbErr, Statement};
use uuid::Uuid;

use crate::{db::Db, housekeeping::next_tenant};

const HAS_MORE_SQL: &str = "SELECT 1 FROM span_vector WHERE tenant_id = $1 LIMIT 1 OFFSET $2";

/// Skips vectors that another process has locked or that are being removed.
const ADD_TO_GRAPH_SQL: &str = "WITH next AS MATERIALIZED (SELECT trace_key, id FROM span_vector \
     WHERE tenant_id = $1 AND NOT indexed ORDER BY project_id, started_at LIMIT $2 FOR UPDATE SKIP LOCKED) \
     UPDATE span_vector v SET indexed = true FROM next \
     WHERE v.tenant_id = $1 AND v.trace_key = next.trace_key AND v.id = next.id";

/// Returns whether a tenant has more vectors than `few`.
///
/// # Errors
/// Fails when the database fails.
pub async fn are_more_than(db: &Db, tenant: Uuid, few: u32) -> Result<bool, DbErr> {
    let values = [tenant.into(), i64::from(few).into()];
    let statement = Statement::from_sql_and_values(db.dialect.backend(), HAS_MORE_SQL, values);
    Ok(db.current().query_one_raw(statement).await?.is_some())
}

/// Returns the next tenant after `last` that has vectors outside of the graph; none if the database has no graph.
///
/// # Errors
/// Fails when the database fails.
pub async fn next_tenant_to_index(db: &Db, last: Uuid) -> Result<Option<Uuid>, DbErr> {
    if !db.finds_nearest() {
        return Ok(None);
    }
    next_tenant(db, "span_vector", "", "NOT indexed", last).await
}

/// Adds up to `limit` vectors of a tenant to the graph. Returns their number.
///
/// # Errors
/// Fails when the database fails.
pub async fn put_into_graph(db: &Db, tenant: Uuid, limit: u64) -> Result<u64, DbErr> {
    let values = [tenant.into(), i64::try_from(limit).unwrap_or(i64::MAX).into()];
    let statement = Statement::from_sql_and_values(db.dialect.backend(), ADD_TO_GRAPH_SQL, values);
    Ok(db.write.execute_raw(statement).await?.rows_affected())
}
