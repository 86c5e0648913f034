//! Reads events for exports: of many traces at once, or of a long trace in pieces.
//!
//! Events without a span are found by SQL, because sea-orm has no subqueries that refer to the outer row.

use entities::event;
use sea_orm::{
    ColumnTrait, Condition, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr,
};
use uuid::Uuid;

use super::spans::read_blocks;
use crate::{
    bulk::{self, Bulk},
    db::Db,
    trace_ids,
};

/// Returns up to `limit` events of these traces, by time within each trace.
///
/// # Errors
/// Fails when the database fails.
pub async fn events_of(
    db: &Db,
    tenant: Uuid,
    traces: &[Uuid],
    limit: u64,
) -> Result<Vec<event::Model>, DbErr> {
    event::Entity::find()
        .filter(event::Column::TenantId.eq(tenant))
        .filter(event::Column::TraceId.is_in(traces.iter().copied()))
        .order_by_asc(event::Column::TraceId)
        .order_by_asc(event::Column::CreatedAt)
        .order_by_asc(event::Column::Id)
        .limit(limit)
        .all(&db.read)
        .await
}

/// Returns the number of events of these traces and the total size of their texts in bytes.
///
/// # Errors
/// Fails when the database fails.
pub async fn size_of_events(db: &Db, tenant: Uuid, traces: &[Uuid]) -> Result<(u64, u64), DbErr> {
    let bytes =
        "CAST(COALESCE(SUM(octet_length(message) + COALESCE(octet_length(metadata), 0)), 0) AS BIGINT)";
    let found: Option<(i64, i64)> = event::Entity::find()
        .select_only()
        .expr(Expr::cust("COUNT(*)"))
        .expr(Expr::cust(bytes))
        .filter(event::Column::TenantId.eq(tenant))
        .filter(event::Column::TraceId.is_in(traces.iter().copied()))
        .into_tuple()
        .one(&db.read)
        .await?;
    let natural = |number: i64| u64::try_from(number).unwrap_or_default();
    Ok(found.map(|(count, bytes)| (natural(count), natural(bytes))).unwrap_or_default())
}

/// Returns the events of some spans of a trace, by time.
///
/// # Errors
/// Fails when the database fails.
pub async fn events_of_spans(
    db: &Db,
    tenant: Uuid,
    trace: Uuid,
    spans: &[Uuid],
) -> Result<Vec<event::Model>, DbErr> {
    event::Entity::find()
        .filter(event::Column::TenantId.eq(tenant))
        .filter(event::Column::TraceId.eq(trace))
        .filter(event::Column::SpanId.is_in(spans.iter().copied()))
        .order_by_asc(event::Column::CreatedAt)
        .order_by_asc(event::Column::Id)
        .all(&db.read)
        .await
}

/// Returns the events of a trace that belong to no stored span, by time.
///
/// # Errors
/// Fails when the database fails.
pub async fn stray_events(db: &Db, tenant: Uuid, trace: Uuid) -> Result<Vec<event::Model>, DbErr> {
    let mut in_block = Vec::new();
    let others = read_blocks(&db.read, tenant, &[trace], |spans| in_block = spans).await?;
    if others.is_empty() {
        let of_no_span = Condition::any()
            .add(event::Column::SpanId.is_null())
            .add(event::Column::SpanId.is_not_in(in_block.iter().map(|it| it.id)));
        return event::Entity::find()
            .filter(event::Column::TenantId.eq(tenant))
            .filter(event::Column::TraceId.eq(trace))
            .filter(of_no_span)
            .order_by_asc(event::Column::CreatedAt)
            .order_by_asc(event::Column::Id)
            .all(&db.read)
            .await;
    }
    let sql = format!(
        "SELECT {} FROM event e WHERE e.tenant_id = $1 AND e.trace_id = $2 AND (e.span_id IS NULL OR NOT EXISTS (\
         SELECT 1 FROM span s WHERE s.tenant_id = $1 AND s.id = e.span_id \
         AND s.trace_key = (SELECT t.key FROM {} t WHERE t.tenant_id = $1 AND t.id = $2))) \
         ORDER BY e.created_at, e.id",
        event::Model::select("e"),
        trace_ids::relation(db.dialect)
    );
    bulk::fetch(&db.read, sql, vec![tenant.into(), trace.into()]).await
}
