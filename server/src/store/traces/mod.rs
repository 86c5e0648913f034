//! Traces: storing, listing, showing, removing.

mod delete;
mod detail;
mod export;
mod filter;
mod list;
mod quota;
mod sessions;
mod statements;
mod text;
mod write;

use entities::trace;
use sea_orm::{ColumnTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};
use uuid::Uuid;

pub use delete::{Removal, remove, started_before};
pub use detail::{Position, by_external_id, events, exists, get, some_spans, spans};
pub use export::{events_of, events_of_spans, otel_ids, spans_of, stray_events};
pub use filter::{Filter, Tag};
pub use list::{Changes, Page, changed_since, page};
pub use quota::Allowance;
pub use sessions::{SessionPage, SessionSums, sessions};
pub use text::{PackedSpans, SpanTexts, Texts, span_texts, trace_texts};
pub use write::{LONG, Stored, store, sum_up_long};

use super::Db;

/// Rows named in one statement: databases limit the number of parameters.
const BLOCK: usize = 500;

/// Marks those of the traces ready whose `ready_at` is still the given one. Answers how many.
///
/// # Errors
/// When the database fails.
pub async fn mark_ready(db: &Db, tenant: Uuid, ids: &[Uuid], ready_at: i64) -> Result<u64, DbErr> {
    let mut marked = 0;
    for block in ids.chunks(BLOCK) {
        let done = trace::Entity::update_many()
            .col_expr(trace::Column::Ready, Expr::value(true))
            .filter(trace::Column::TenantId.eq(tenant))
            .filter(trace::Column::Id.is_in(block.iter().copied()))
            .filter(trace::Column::ReadyAt.eq(ready_at))
            .exec(&db.write)
            .await?;
        marked += done.rows_affected;
    }
    Ok(marked)
}

/// The tenant's newest `limit` traces, each with the number of its spans.
///
/// # Errors
/// When the database fails.
pub async fn newest(db: &Db, tenant: Uuid, limit: u64) -> Result<Vec<(Uuid, i32)>, DbErr> {
    trace::Entity::find()
        .select_only()
        .columns([trace::Column::Id, trace::Column::SpanCount])
        .filter(trace::Column::TenantId.eq(tenant))
        .order_by_desc(trace::Column::StartedAt)
        .order_by_desc(trace::Column::Id)
        .limit(limit)
        .into_tuple()
        .all(&db.read)
        .await
}
