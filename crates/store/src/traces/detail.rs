//! Reads one trace with its events.
//!
//! The sizes of events are computed by SQL.

use api::trace_filter::TraceConditions;
use entities::{event, trace};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    Statement, Value,
};
use uuid::Uuid;

use super::{
    by_id,
    list::narrow_page,
    spans::Position,
    text::{Counted, SMALL_BLOCK_BYTES},
};
use crate::{db::Db, error::Result, memory::MemoryAccount};

/// Returns the row of a trace.
///
/// # Errors
/// Fails when the database fails.
pub async fn get(db: &Db, tenant: Uuid, id: Uuid) -> Result<Option<trace::Model>, DbErr> {
    by_id(&db.read, tenant, id).one(&db.read).await
}

/// Returns whether a trace exists, read from the primary rather than from a replica.
///
/// # Errors
/// Fails when the database fails.
pub async fn exists(db: &Db, tenant: Uuid, id: Uuid) -> Result<bool, DbErr> {
    Ok(project_of(db, tenant, id).await?.is_some())
}

/// Returns the project of a trace, read from the primary rather than from a replica.
///
/// # Errors
/// Fails when the database fails.
pub async fn project_of(db: &Db, tenant: Uuid, id: Uuid) -> Result<Option<Uuid>, DbErr> {
    by_id(db.current(), tenant, id)
        .select_only()
        .column(trace::Column::ProjectId)
        .into_tuple()
        .one(db.current())
        .await
}

/// Returns the newest trace with this external ID, read from the primary rather than from a replica.
///
/// # Errors
/// Fails when the database fails.
pub async fn by_external_id(db: &Db, tenant: Uuid, name: &str) -> Result<Option<Uuid>, DbErr> {
    let filter = TraceConditions { external_id: Some(name.to_owned()), ..TraceConditions::default() };
    Ok(narrow_page(&db.primary(), tenant, &filter, None, 1).await?.first().map(|it| it.id))
}

/// Returns events like [`events`], but limited to about `max_bytes` in total, and to at least one event.
/// Memory for large events is reserved; the second value is the size of the reservation.
///
/// # Errors
/// Fails with `overloaded` when there is no memory; internal when the database fails.
pub async fn events_within(
    db: &Db,
    tenant: Uuid,
    trace: Uuid,
    after: Option<Position>,
    limit: u64,
    max_bytes: usize,
    memory: &mut impl MemoryAccount,
) -> Result<Counted<Vec<event::Model>>> {
    let mut sql = "SELECT CAST(octet_length(e.message) + COALESCE(octet_length(e.metadata), 0) \
                   + octet_length(e.level) AS BIGINT) FROM event e WHERE e.tenant_id = $1 AND e.trace_id = $2"
        .to_owned();
    let mut values: Vec<Value> = vec![tenant.into(), trace.into()];
    if let Some((at, id)) = after {
        sql.push_str(" AND (e.created_at > $3 OR e.created_at = $3 AND e.id > $4)");
        values.extend([at.into(), id.into()]);
    }
    sql.push_str(&format!(" ORDER BY e.created_at, e.id LIMIT {limit}"));
    let rows =
        db.read.query_all_raw(Statement::from_sql_and_values(db.dialect.backend(), sql, values)).await?;
    let (mut count, mut bytes) = (0, 0);
    for row in rows {
        let size = usize::try_from(row.try_get_by_index::<i64>(0)?).unwrap_or_default();
        if count > 0 && bytes + size > max_bytes {
            break;
        }
        (count, bytes) = (count + 1, bytes + size);
    }
    if count == 0 {
        return Ok(Counted::default());
    }
    let reserved = if bytes > SMALL_BLOCK_BYTES { 2 * bytes } else { 0 };
    memory.reserve(reserved).await?;
    match events(db, tenant, trace, after, count).await {
        Ok(texts) => Ok(Counted { texts, reserved }),
        Err(error) => {
            memory.release(reserved);
            Err(error.into())
        }
    }
}

/// Returns up to `limit` events of a trace by time, beginning after `after`.
///
/// # Errors
/// Fails when the database fails.
pub async fn events(
    db: &Db,
    tenant: Uuid,
    trace: Uuid,
    after: Option<Position>,
    limit: u64,
) -> Result<Vec<event::Model>, DbErr> {
    let mut query = event::Entity::find()
        .filter(event::Column::TenantId.eq(tenant))
        .filter(event::Column::TraceId.eq(trace));
    if let Some((at, id)) = after {
        let same = Condition::all().add(event::Column::CreatedAt.eq(at)).add(event::Column::Id.gt(id));
        query = query.filter(Condition::any().add(event::Column::CreatedAt.gt(at)).add(same));
    }
    query
        .order_by_asc(event::Column::CreatedAt)
        .order_by_asc(event::Column::Id)
        .limit(limit)
        .all(&db.read)
        .await
}
