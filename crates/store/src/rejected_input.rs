//! Rejected input: spans and traces that ingest rejected within accepted requests.

use entities::rejected_input;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, ExprTrait, IntoActiveModel,
    QueryFilter, QueryTrait, sea_query::Expr,
};
use uuid::Uuid;

use crate::{housekeeping::ExpiringRows, page::newest_first};

/// Rejected input by the time of its first request.
pub const EXPIRING_INPUT: ExpiringRows = ExpiringRows::of("rejected_input", "received_at");

/// Rejected items of further requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RejectedCount {
    /// Number of rejected items.
    pub rejected: i64,
    /// Number of requests.
    pub requests: i64,
    /// Time of the last request, microseconds.
    pub last_at: i64,
}

impl RejectedCount {
    /// Adds the items of other requests.
    pub fn merge(&mut self, other: Self) {
        self.rejected = self.rejected.saturating_add(other.rejected);
        self.requests = self.requests.saturating_add(other.requests);
        self.last_at = std::cmp::max(self.last_at, other.last_at);
    }
}

/// Inserts a row.
///
/// # Errors
/// Fails when the database fails.
pub async fn insert(db: &impl ConnectionTrait, row: rejected_input::Model) -> Result<(), DbErr> {
    let insert = rejected_input::Entity::insert(row.into_active_model().reset_all());
    insert.exec_without_returning(db).await?;
    Ok(())
}

/// Adds rejected items to a row, if it exists.
///
/// # Errors
/// Fails when the database fails.
pub async fn add(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    id: Uuid,
    count: RejectedCount,
) -> Result<(), DbErr> {
    use rejected_input::Column;
    let RejectedCount { rejected, requests, last_at } = count;
    let update = rejected_input::Entity::update_many()
        .col_expr(Column::Rejected, Expr::col(Column::Rejected).add(rejected))
        .col_expr(Column::Requests, Expr::col(Column::Requests).add(requests))
        .col_expr(Column::LastAt, last_at.into())
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Id.eq(id));
    update.exec(db).await?;
    Ok(())
}

/// Returns a page, newest first, beginning after the time and ID of `after`.
///
/// # Errors
/// Fails when the database fails.
pub async fn page(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    project: Option<Uuid>,
    after: Option<(i64, Uuid)>,
    limit: u64,
) -> Result<Vec<rejected_input::Model>, DbErr> {
    use rejected_input::Column;
    let query = rejected_input::Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .apply_if(project, |query, it| query.filter(Column::ProjectId.eq(it)));
    newest_first(query, (Column::ReceivedAt, Column::Id), after, limit).all(db).await
}
