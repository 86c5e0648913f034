//! Reads the vector of one span, to find similar spans.
//!
//! The statement is SQL, because the column has another type on each database.

use entities::dialect::Dialect;
use uuid::Uuid;

use super::{StoredVector, UnitVector};
use crate::{db::Db, trace_ids};

/// Returns the vector of a span and the name of its embedding model, which is empty if the vector was sent
/// with the span. Returns `None` if the span is unknown or has no vector.
///
/// # Errors
/// Fails when the database fails.
pub async fn of_span(
    db: &Db,
    tenant: Uuid,
    trace: Uuid,
    span: Uuid,
) -> sqlx::Result<Option<(UnitVector, String)>> {
    let sql = format!(
        "SELECT v.vector, v.embedding_model FROM span_vector v WHERE v.tenant_id = $1 \
         AND v.trace_key = (SELECT t.key FROM {} t WHERE t.tenant_id = $1 AND t.id = $2) AND v.id = $3",
        trace_ids::relation(db.dialect)
    );
    let sql = sqlx::AssertSqlSafe(sql);
    let found: Option<(StoredVector, String)> = match db.dialect {
        Dialect::Sqlite => {
            let pool = db.read.get_sqlite_connection_pool();
            sqlx::query_as(sql).bind(tenant).bind(trace).bind(span).fetch_optional(pool).await?
        }
        Dialect::Postgres => {
            let pool = db.read.get_postgres_connection_pool();
            sqlx::query_as(sql).bind(tenant).bind(trace).bind(span).fetch_optional(pool).await?
        }
    };
    Ok(found.and_then(|(vector, model)| Some((vector.read()?, model))))
}
