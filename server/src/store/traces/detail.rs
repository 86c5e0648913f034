//! One trace with its spans and events.

use entities::{event, span, trace};
use sea_orm::{ColumnTrait, Condition, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::super::Db;

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
    let mut query = span::Entity::find()
        .filter(span::Column::TenantId.eq(tenant))
        .filter(span::Column::TraceId.eq(trace));
    if let Some((at, id)) = after {
        let later = Condition::any()
            .add(span::Column::StartedAt.gt(at))
            .add(Condition::all().add(span::Column::StartedAt.eq(at)).add(span::Column::Id.gt(id)));
        query = query.filter(later);
    }
    query
        .order_by_asc(span::Column::StartedAt)
        .order_by_asc(span::Column::Id)
        .limit(limit)
        .all(&db.read)
        .await
}

/// Up to `limit` events of a trace by time.
///
/// # Errors
/// When the database fails.
pub async fn events(db: &Db, tenant: Uuid, trace: Uuid, limit: u64) -> Result<Vec<event::Model>, DbErr> {
    event::Entity::find()
        .filter(event::Column::TenantId.eq(tenant))
        .filter(event::Column::TraceId.eq(trace))
        .order_by_asc(event::Column::CreatedAt)
        .order_by_asc(event::Column::Id)
        .limit(limit)
        .all(&db.read)
        .await
}
