//! The detectors of projects: when they are due, and their state between two intervals.
//!
//! Two statements are SQL, because they join rows of two tables by tenant.

use entities::anomaly_detector;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect,
    Statement, sea_query::OnConflict,
};
use uuid::Uuid;

use crate::{db::Db, housekeeping::next_tenant, metrics::level::Level};

/// The detectors of a project with a due interval.
#[derive(Clone, Debug, PartialEq)]
pub struct DueDetector {
    /// The stored row.
    pub row: anomaly_detector::Model,
    /// Whether the project is archived.
    pub is_archived: bool,
}

/// Returns the next tenant after `last` that has an active project.
///
/// # Errors
/// Fails when the database fails.
pub async fn next_tenant_with_projects(db: &Db, last: Uuid) -> Result<Option<Uuid>, DbErr> {
    next_tenant(db, "project", "", "archived_at IS NULL", last).await
}

/// Returns the active projects of a tenant without detectors that have traces on a day that begins within a period
/// (microseconds, both ends inclusive), at most `limit`.
///
/// # Errors
/// Fails when the database fails.
pub async fn projects_without(
    db: &Db,
    tenant: Uuid,
    (from, to): (i64, i64),
    limit: u32,
) -> Result<Vec<Uuid>, DbErr> {
    let day = Level::DAY.stored();
    let sql = format!(
        "SELECT p.id FROM project p WHERE p.tenant_id = $1 AND p.archived_at IS NULL \
         AND NOT EXISTS (SELECT 1 FROM anomaly_detector d WHERE d.tenant_id = $1 AND d.project_id = p.id) \
         AND EXISTS (SELECT 1 FROM metric_node n WHERE n.tenant_id = $1 AND n.project_id = p.id \
         AND n.level = {day} AND n.start BETWEEN $2 AND $3) ORDER BY p.id LIMIT {limit}"
    );
    let values = [tenant.into(), from.into(), to.into()];
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
    let rows = db.current().query_all_raw(statement).await?;
    rows.iter().map(|it| it.try_get_by_index(0)).collect()
}

/// Inserts the detectors of a project, unless it has some.
///
/// # Errors
/// Fails when the database fails.
pub async fn add(db: &impl ConnectionTrait, row: anomaly_detector::Model) -> Result<(), DbErr> {
    let row: anomaly_detector::ActiveModel = row.into();
    let keep = OnConflict::new().do_nothing().to_owned();
    anomaly_detector::Entity::insert(row).on_conflict(keep).exec_without_returning(db).await?;
    Ok(())
}

/// Returns the detectors whose next interval ended at or before a time, the latest first: detectors that learn from
/// past intervals do not delay the others.
///
/// # Errors
/// Fails when the database fails.
pub async fn due(db: &Db, tenant: Uuid, ended: i64, limit: u32) -> Result<Vec<DueDetector>, DbErr> {
    let sql = format!(
        "SELECT d.*, p.archived_at IS NOT NULL AS is_archived FROM anomaly_detector d \
         LEFT JOIN project p ON p.tenant_id = $1 AND p.id = d.project_id \
         WHERE d.tenant_id = $1 AND d.due_at <= $2 ORDER BY d.due_at DESC, d.project_id DESC LIMIT {limit}"
    );
    let values = [tenant.into(), ended.into()];
    let statement = Statement::from_sql_and_values(db.dialect.backend(), sql, values);
    let rows = db.current().query_all_raw(statement).await?;
    let due = rows.iter().map(|it| {
        Ok(DueDetector {
            row: anomaly_detector::Model::from_query_result(it, "")?,
            is_archived: it.try_get("", "is_archived")?,
        })
    });
    due.collect()
}

/// Returns the earliest end of a next interval; `None` if the tenant has no detectors.
///
/// # Errors
/// Fails when the database fails.
pub async fn next_due(db: &Db, tenant: Uuid) -> Result<Option<i64>, DbErr> {
    use anomaly_detector::Column;
    anomaly_detector::Entity::find()
        .select_only()
        .column(Column::DueAt)
        .filter(Column::TenantId.eq(tenant))
        .order_by_asc(Column::DueAt)
        .into_tuple()
        .one(db.current())
        .await
}

/// Replaces a row that is unchanged since it was read. Returns false if another process has processed its next
/// interval.
///
/// # Errors
/// Fails when the database fails.
pub async fn advance(
    txn: &impl ConnectionTrait,
    before: &anomaly_detector::Model,
    after: anomaly_detector::Model,
) -> Result<bool, DbErr> {
    use anomaly_detector::Column;
    let anomaly_detector::Model {
        tenant_id: _,
        project_id: _,
        interval_micros,
        next_start,
        due_at,
        live_from,
        state,
        updated_at,
    } = after;
    let update = anomaly_detector::Entity::update_many()
        .col_expr(Column::IntervalMicros, interval_micros.into())
        .col_expr(Column::NextStart, next_start.into())
        .col_expr(Column::DueAt, due_at.into())
        .col_expr(Column::LiveFrom, live_from.into())
        .col_expr(Column::State, state.into())
        .col_expr(Column::UpdatedAt, updated_at.into())
        .filter(Column::TenantId.eq(before.tenant_id))
        .filter(Column::ProjectId.eq(before.project_id))
        .filter(Column::IntervalMicros.eq(before.interval_micros))
        .filter(Column::NextStart.eq(before.next_start));
    Ok(update.exec(txn).await?.rows_affected > 0)
}

/// Removes a row unless it has changed since it was read. Returns whether it was removed.
///
/// # Errors
/// Fails when the database fails.
pub async fn remove(txn: &impl ConnectionTrait, before: &anomaly_detector::Model) -> Result<bool, DbErr> {
    use anomaly_detector::Column;
    let removal = anomaly_detector::Entity::delete_many()
        .filter(Column::TenantId.eq(before.tenant_id))
        .filter(Column::ProjectId.eq(before.project_id))
        .filter(Column::IntervalMicros.eq(before.interval_micros))
        .filter(Column::NextStart.eq(before.next_start));
    Ok(removal.exec(txn).await?.rows_affected > 0)
}
