//! One trace with its spans and events.

use entities::{event, span, trace};
use sea_orm::{ColumnTrait, Condition, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Value};
use uuid::Uuid;

use super::super::{
    Db,
    bulk::{self, Bulk},
};

/// A place in the order of spans: start, id.
pub type Position = (i64, Uuid);

/// The trace's row.
///
/// # Errors
/// When the database fails.
pub async fn get(db: &Db, tenant: Uuid, id: Uuid) -> Result<Option<trace::Model>, DbErr> {
    trace::Entity::find_by_id((tenant, id)).one(&db.read).await
}

/// Up to `limit` spans of a trace by start, after `after`.
///
/// # Errors
/// When the database fails.
pub async fn spans(
    db: &Db,
    tenant: Uuid,
    trace: Uuid,
    after: Option<Position>,
    limit: u64,
) -> Result<Vec<span::Model>, DbErr> {
    let mut sql =
        format!("SELECT {} FROM span s WHERE s.tenant_id = $1 AND s.trace_id = $2", span::Model::select("s"));
    let mut values: Vec<Value> = vec![tenant.into(), trace.into()];
    if let Some((at, id)) = after {
        sql.push_str(" AND (s.started_at > $3 OR s.started_at = $3 AND s.id > $4)");
        values.extend([at.into(), id.into()]);
    }
    sql.push_str(&format!(" ORDER BY s.started_at, s.id LIMIT {limit}"));
    bulk::fetch(&db.read, sql, values).await
}

/// Up to `limit` events of a trace by time, after `after`.
///
/// # Errors
/// When the database fails.
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
