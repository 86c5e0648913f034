//! Anomalies: queries of their list, and the storage of reported ones.

pub mod detectors;
mod scores;

use api::anomaly::{AnomalyCloseReason, AnomalySeverity, AnomalyStatus};
use entities::anomaly;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel, QueryFilter,
    QueryTrait,
};
use uuid::Uuid;

use crate::{housekeeping::ExpiringRows, page::newest_first};

pub use scores::{ScoreTotals, scores};

/// Anomalies by the time at which they were detected.
pub const EXPIRING_ANOMALIES: ExpiringRows = ExpiringRows::of("anomaly", "created_at");

/// The filters of a list of anomalies.
#[derive(Clone, Debug, Default)]
pub struct AnomalyFilter {
    /// Only anomalies of this project.
    pub project_id: Option<Uuid>,
    /// Only anomalies of this metric.
    pub metric: Option<String>,
    /// Only anomalies of this severity.
    pub severity: Option<AnomalySeverity>,
    /// Detected at or after this time, in microseconds.
    pub from: Option<i64>,
    /// Detected at or before this time, in microseconds.
    pub to: Option<i64>,
}

/// Returns a page, newest first, beginning after the time and ID of `after`.
///
/// # Errors
/// Fails when the database fails.
pub async fn page(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    filter: &AnomalyFilter,
    after: Option<(i64, Uuid)>,
    limit: u64,
) -> Result<Vec<anomaly::Model>, DbErr> {
    use anomaly::Column;
    let query = anomaly::Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .apply_if(filter.project_id, |query, it| query.filter(Column::ProjectId.eq(it)))
        .apply_if(filter.metric.as_deref(), |query, it| query.filter(Column::Metric.eq(it)))
        .apply_if(filter.severity, |query, it| query.filter(Column::Severity.eq(it.as_str())))
        .apply_if(filter.from, |query, it| query.filter(Column::CreatedAt.gte(it)))
        .apply_if(filter.to, |query, it| query.filter(Column::CreatedAt.lte(it)));
    newest_first(query, (Column::CreatedAt, Column::Id), after, limit).all(db).await
}

/// Stores an anomaly that was opened. An anomaly of the same metric that began at the same time is opened again.
/// Returns the stored row, and whether it was inserted.
///
/// # Errors
/// Fails when the database fails.
pub async fn open(txn: &impl ConnectionTrait, row: anomaly::Model) -> Result<(anomaly::Model, bool), DbErr> {
    if let Some(changed) = change(txn, row.clone()).await? {
        return Ok((changed, false));
    }
    let insert = anomaly::Entity::insert(row.clone().into_active_model().reset_all());
    insert.exec_without_returning(txn).await?;
    Ok((row, true))
}

/// Replaces the stored anomaly of the same metric that began at the same time, except its ID and the time of its
/// detection. Returns the stored row; `None` if there is none, because it has expired.
///
/// # Errors
/// Fails when the database fails.
pub async fn change(
    txn: &impl ConnectionTrait,
    row: anomaly::Model,
) -> Result<Option<anomaly::Model>, DbErr> {
    use anomaly::Column;
    let stored = anomaly::Entity::find()
        .filter(Column::TenantId.eq(row.tenant_id))
        .filter(Column::ProjectId.eq(row.project_id))
        .filter(Column::Metric.eq(row.metric.as_str()))
        .filter(Column::WindowStart.eq(row.window_start))
        .one(txn)
        .await?;
    let Some(anomaly::Model { id, created_at, .. }) = stored else { return Ok(None) };
    let row = anomaly::Model { id, created_at, ..row };
    row.clone().into_active_model().reset_all().update(txn).await?;
    Ok(Some(row))
}

/// Closes the open anomalies of a project whose detectors are removed.
///
/// # Errors
/// Fails when the database fails.
pub async fn close_all(
    txn: &impl ConnectionTrait,
    tenant: Uuid,
    project: Uuid,
    now: i64,
) -> Result<(), DbErr> {
    use anomaly::Column;
    anomaly::Entity::update_many()
        .col_expr(Column::Status, AnomalyStatus::Closed.as_str().into())
        .col_expr(Column::CloseReason, AnomalyCloseReason::DetectionStopped.as_str().into())
        .col_expr(Column::UpdatedAt, now.into())
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::ProjectId.eq(project))
        .filter(Column::Status.eq(AnomalyStatus::Open.as_str()))
        .exec(txn)
        .await?;
    Ok(())
}
