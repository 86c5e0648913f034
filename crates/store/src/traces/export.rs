//! Reads spans and events for exports: of many traces at once, or of a long trace in pieces.
//!
//! Statements are SQL, because rows are read in bulk, by the position of their columns, with ranges of two
//! columns.

use std::collections::HashMap;

use entities::{event, span};
use sea_orm::{
    ColumnTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Value, sea_query::Expr,
};
use uuid::Uuid;

use super::keys_of;
use crate::{
    bulk::{self, Bulk},
    db::Db,
    trace_ids,
};

/// Returns all spans of these traces, by start within each trace.
///
/// # Errors
/// Fails when the database fails.
pub async fn spans_of(db: &Db, tenant: Uuid, traces: &[Uuid]) -> Result<Vec<span::Model>, DbErr> {
    let places: Vec<String> = (2..traces.len() + 2).map(|it| format!("${it}")).collect();
    let sql = format!(
        "SELECT {} FROM span s WHERE s.tenant_id = $1 \
         AND s.trace_key IN (SELECT t.key FROM {} t WHERE t.tenant_id = $1 AND t.id IN ({})) \
         ORDER BY s.trace_id, s.started_at, s.id",
        span::Model::select("s"),
        trace_ids::relation(db.dialect),
        places.join(",")
    );
    let values: Vec<Value> = std::iter::once(tenant).chain(traces.iter().copied()).map(Into::into).collect();
    bulk::fetch(&db.read, sql, values).await
}

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

/// Returns the given OpenTelemetry IDs that belong to stored spans of a trace.
///
/// # Errors
/// Fails when the database fails.
pub async fn otel_ids(
    db: &Db,
    tenant: Uuid,
    trace: Uuid,
    spans: &[Uuid],
) -> Result<HashMap<Uuid, Option<Vec<u8>>>, DbErr> {
    let rows: Vec<(Uuid, Option<Vec<u8>>)> = span::Entity::find()
        .select_only()
        .column(span::Column::Id)
        .column(span::Column::OtelSpanId)
        .filter(span::Column::TenantId.eq(tenant))
        .filter(span::Column::TraceKey.in_subquery(keys_of(&db.read, tenant, &[trace])))
        .filter(span::Column::Id.is_in(spans.iter().copied()))
        .into_tuple()
        .all(&db.read)
        .await?;
    Ok(rows.into_iter().collect())
}
