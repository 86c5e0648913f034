//! Feedback: what was said of traces.
//!
//! A trace's row keeps the label of its newest feedback, because the metrics count traces by it.
//! Whoever says something holds the lock of that row, so what is newest is settled one after the
//! other, and nothing is said of a trace that is being removed.

use api::feedback::FeedbackLabel;
use entities::{feedback, span, trace};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QueryOrder, QuerySelect, QueryTrait,
};
use uuid::Uuid;

use super::{Db, metrics, page::newest_first};
use crate::metrics::fact::stored_label;

/// Which feedback a list shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    /// Only on traces of this project.
    pub project_id: Option<Uuid>,
    /// Only on this trace.
    pub trace_id: Option<Uuid>,
    /// Only with this label.
    pub label: Option<FeedbackLabel>,
    /// First said from this time on, microseconds.
    pub from: Option<i64>,
    /// First said up to this time, microseconds.
    pub to: Option<i64>,
}

/// What became of something that was said.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// It is stored, as a row of its own.
    Added(feedback::Model),
    /// It stands where the same user's word from the same source stood.
    Replaced(feedback::Model),
    /// The trace does not exist.
    NoTrace,
    /// The trace has no span with this ID.
    NoSpan,
}

/// Stores what was said. `new` brings the ids and times of a row of its own; the project is taken
/// from the trace.
///
/// # Errors
/// When the database fails; nothing is stored then.
pub async fn say(db: &Db, new: feedback::Model) -> Result<Said, DbErr> {
    let (tenant, trace, said_at) = (new.tenant_id, new.trace_id, new.updated_at);
    let txn = db.begin().await?;
    let Some(row) = trace::Entity::find_by_id((tenant, trace)).lock_exclusive().one(&txn).await? else {
        return Ok(Said::NoTrace);
    };
    if let Some(id) = new.span_id
        && span::Entity::find_by_id((tenant, trace, id)).one(&txn).await?.is_none()
    {
        return Ok(Said::NoSpan);
    }
    let new = feedback::Model { project_id: row.project_id, ..new };
    let said = match of_user(&txn, &new).await? {
        Some(feedback::Model { id, created_at, .. }) => {
            let new = feedback::Model { id, created_at, ..new };
            new.clone().into_active_model().reset_all().update(&txn).await?;
            Said::Replaced(new)
        }
        None => {
            let insert = feedback::Entity::insert(new.clone().into_active_model().reset_all());
            insert.exec_without_returning(&txn).await?;
            Said::Added(new)
        }
    };
    settle(&txn, row, said_at).await?;
    txn.commit().await?;
    Ok(said)
}

/// A page, newest first, after the (time, id) of `after`.
///
/// # Errors
/// When the database fails.
pub async fn page(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    filter: &Filter,
    after: Option<(i64, Uuid)>,
    limit: u64,
) -> Result<Vec<feedback::Model>, DbErr> {
    use feedback::Column;
    let query = feedback::Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .apply_if(filter.project_id, |query, it| query.filter(Column::ProjectId.eq(it)))
        .apply_if(filter.trace_id, |query, it| query.filter(Column::TraceId.eq(it)))
        .apply_if(filter.label, |query, it| query.filter(Column::Label.eq(it.as_str())))
        .apply_if(filter.from, |query, it| query.filter(Column::CreatedAt.gte(it)))
        .apply_if(filter.to, |query, it| query.filter(Column::CreatedAt.lte(it)));
    newest_first(query, (Column::CreatedAt, Column::Id), after, limit).all(db).await
}

/// What the same user said of the same trace before, from the same source.
async fn of_user(txn: &DatabaseTransaction, new: &feedback::Model) -> Result<Option<feedback::Model>, DbErr> {
    use feedback::Column;
    let Some(user) = &new.user_id else { return Ok(None) };
    feedback::Entity::find()
        .filter(Column::TenantId.eq(new.tenant_id))
        .filter(Column::TraceId.eq(new.trace_id))
        .filter(Column::UserId.eq(user.as_str()))
        .filter(Column::Source.eq(new.source.as_str()))
        .one(txn)
        .await
}

/// Brings the trace's row, which is locked, and the metrics in line with its newest feedback.
async fn settle(txn: &DatabaseTransaction, row: trace::Model, now: i64) -> Result<(), DbErr> {
    use feedback::Column;
    let newest: Option<String> = feedback::Entity::find()
        .select_only()
        .column(Column::Label)
        .filter(Column::TenantId.eq(row.tenant_id))
        .filter(Column::TraceId.eq(row.id))
        .order_by_desc(Column::UpdatedAt)
        .order_by_desc(Column::Id)
        .into_tuple()
        .one(txn)
        .await?;
    let label = newest.and_then(|it| it.parse().ok()).map(stored_label);
    if label == row.feedback {
        return Ok(());
    }
    // A row from before there were metrics is counted from now on.
    let settled = trace::Model { feedback: label, measured: true, ..row.clone() };
    trace::Entity::update_many()
        .col_expr(trace::Column::Feedback, settled.feedback.into())
        .col_expr(trace::Column::Measured, settled.measured.into())
        .filter(trace::Column::TenantId.eq(row.tenant_id))
        .filter(trace::Column::Id.eq(row.id))
        .exec(txn)
        .await?;
    metrics::changed(txn, &row, &settled, now).await
}
