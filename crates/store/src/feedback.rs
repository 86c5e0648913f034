//! Feedback on traces.
//!
//! A trace's row has the label of its newest feedback, because the metrics count traces by it.
//! Transactions that store feedback lock this row, so that the newest feedback is determined
//! sequentially, and a trace that is being removed gets no feedback.

use api::feedback::FeedbackLabel;
use entities::{feedback, trace};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QueryOrder, QuerySelect, QueryTrait,
};
use uuid::Uuid;

use crate::{
    db::Db,
    metrics::{self, fact::stored_label},
    page::newest_first,
    row_text::MAX_TAG_BYTES,
    traces,
};

/// The filters of a feedback list.
#[derive(Clone, Copy, Debug, Default)]
pub struct FeedbackFilter {
    /// Only on traces of this project.
    pub project_id: Option<Uuid>,
    /// Only on this trace.
    pub trace_id: Option<Uuid>,
    /// Only feedback with this label.
    pub label: Option<FeedbackLabel>,
    /// Created at or after this time, in microseconds.
    pub from: Option<i64>,
    /// Created at or before this time, in microseconds.
    pub to: Option<i64>,
}

/// The result of storing feedback.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedbackOutcome {
    /// A row was inserted.
    Added(feedback::Model),
    /// The row replaced the feedback of the same user from the same source.
    Replaced(feedback::Model),
    /// The trace does not exist.
    NoTrace,
    /// The trace has no span with this ID.
    NoSpan,
}

/// Stores feedback. `new` has the ID and times for a new row; the project is the trace's.
///
/// # Errors
/// Fails when the database fails; nothing is stored then.
pub async fn save(db: &Db, new: feedback::Model) -> Result<FeedbackOutcome, DbErr> {
    save_row(db, new, FeedbackIdentity::User).await
}

/// Stores feedback with a masked user or source. It replaces nothing, because different users have the same placeholder: if
/// there is a row with it, the row's ID is appended to the user.
///
/// # Errors
/// Fails when the database fails; nothing is stored then.
pub async fn save_masked(db: &Db, new: feedback::Model) -> Result<FeedbackOutcome, DbErr> {
    save_row(db, new, FeedbackIdentity::Masked).await
}

/// Whether the user and the source of feedback identify a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FeedbackIdentity {
    /// They identify the person.
    User,
    /// They are placeholders, which several persons share.
    Masked,
}

async fn save_row(
    db: &Db,
    new: feedback::Model,
    identity: FeedbackIdentity,
) -> Result<FeedbackOutcome, DbErr> {
    let (tenant, trace, given_at) = (new.tenant_id, new.trace_id, new.updated_at);
    let txn = db.begin().await?;
    let Some(row) = traces::by_id(&txn, tenant, trace).lock_exclusive().one(&txn).await? else {
        return Ok(FeedbackOutcome::NoTrace);
    };
    if let Some(id) = new.span_id
        && !traces::has_span(&txn, &row, id).await?
    {
        return Ok(FeedbackOutcome::NoSpan);
    }
    let new = feedback::Model { project_id: row.project_id, ..new };
    let outcome = match of_user(&txn, &new).await? {
        Some(_) if identity == FeedbackIdentity::Masked => {
            let user_id = new.user_id.as_deref().map(|it| distinct_user(it, new.id));
            let new = feedback::Model { user_id, ..new };
            let insert = feedback::Entity::insert(new.clone().into_active_model().reset_all());
            insert.exec_without_returning(&txn).await?;
            FeedbackOutcome::Added(new)
        }
        Some(feedback::Model { id, created_at, .. }) => {
            let new = feedback::Model { id, created_at, ..new };
            new.clone().into_active_model().reset_all().update(&txn).await?;
            FeedbackOutcome::Replaced(new)
        }
        None => {
            let insert = feedback::Entity::insert(new.clone().into_active_model().reset_all());
            insert.exec_without_returning(&txn).await?;
            FeedbackOutcome::Added(new)
        }
    };
    update_trace(&txn, row, given_at).await?;
    txn.commit().await?;
    Ok(outcome)
}

/// Returns a page, newest first, beginning after the time and ID of `after`.
///
/// # Errors
/// Fails when the database fails.
pub async fn page(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    filter: &FeedbackFilter,
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

/// Returns a masked user with an ID appended, within the maximum length of a user.
fn distinct_user(user: &str, id: Uuid) -> String {
    let id = id.simple().to_string();
    let end = user.floor_char_boundary(MAX_TAG_BYTES - id.len() - 1);
    format!("{}_{id}", &user[..end])
}

/// Returns the earlier feedback of the same user on the same trace, from the same source.
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

/// Updates the trace's locked row and the metrics to its newest feedback.
async fn update_trace(txn: &DatabaseTransaction, row: trace::Model, now: i64) -> Result<(), DbErr> {
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
    // A trace that an earlier version stored is counted with all of its facts from now on.
    let settled = trace::Model { feedback: label, measured: true, tokens_measured: true, ..row.clone() };
    trace::Entity::update_many()
        .col_expr(trace::Column::Feedback, settled.feedback.into())
        .col_expr(trace::Column::Measured, settled.measured.into())
        .col_expr(trace::Column::TokensMeasured, settled.tokens_measured.into())
        .filter(trace::Column::TenantId.eq(row.tenant_id))
        .filter(trace::Column::Key.eq(row.key))
        .exec(txn)
        .await?;
    metrics::changed(txn, &row, &settled, now).await
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{MAX_TAG_BYTES, distinct_user};

    #[test]
    fn distinct_user_fits_and_differs() {
        let (first, second) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_eq!(distinct_user("[REDACTED:email]", first), format!("[REDACTED:email]_{}", first.simple()));
        let long = "é".repeat(MAX_TAG_BYTES);
        assert_ne!(distinct_user(&long, first), distinct_user(&long, second));
        assert!(distinct_user(&long, first).len() <= MAX_TAG_BYTES);
    }
}
