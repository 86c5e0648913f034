//! Projects of a tenant.

use entities::project;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect,
};
use uuid::Uuid;

use crate::{db::Db, housekeeping::next_tenant, page::newest_first};

/// Selects projects by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// Projects that accept traces.
    #[default]
    Active,
    /// Archived projects, which accept no traces.
    Archived,
    /// All projects.
    All,
}

/// Returns a project.
///
/// # Errors
/// Fails when the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Result<Option<project::Model>, DbErr> {
    project::Entity::find_by_id((tenant, id)).one(db).await
}

/// Returns the project with this name.
///
/// # Errors
/// Fails when the database fails.
pub async fn by_name(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    name: &str,
) -> Result<Option<project::Model>, DbErr> {
    project::Entity::find()
        .filter(project::Column::TenantId.eq(tenant))
        .filter(project::Column::Name.eq(name))
        .one(db)
        .await
}

/// Returns the oldest active project.
///
/// # Errors
/// Fails when the database fails.
pub async fn oldest_active(db: &impl ConnectionTrait, tenant: Uuid) -> Result<Option<project::Model>, DbErr> {
    project::Entity::find()
        .filter(project::Column::TenantId.eq(tenant))
        .filter(project::Column::ArchivedAt.is_null())
        .order_by_asc(project::Column::CreatedAt)
        .order_by_asc(project::Column::Id)
        .one(db)
        .await
}

/// Counts the projects that ingest created, archived ones included.
///
/// # Errors
/// Fails when the database fails.
pub async fn count_created_by_ingest(db: &impl ConnectionTrait, tenant: Uuid) -> Result<u64, DbErr> {
    project::Entity::find()
        .filter(project::Column::TenantId.eq(tenant))
        .filter(project::Column::CreatedByIngest.eq(true))
        .count(db)
        .await
}

/// Returns the ids of all projects, archived ones included.
///
/// # Errors
/// Fails when the database fails.
pub async fn ids(db: &impl ConnectionTrait, tenant: Uuid) -> Result<Vec<Uuid>, DbErr> {
    let ids = project::Entity::find().select_only().column(project::Column::Id);
    ids.filter(project::Column::TenantId.eq(tenant)).into_tuple().all(db).await
}

/// Returns a page of projects, newest first, that begins after the (time, id) of `after`.
///
/// # Errors
/// Fails when the database fails.
pub async fn page(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    show: Show,
    after: Option<(i64, Uuid)>,
    limit: u64,
) -> Result<Vec<project::Model>, DbErr> {
    let mut query = project::Entity::find().filter(project::Column::TenantId.eq(tenant));
    query = match show {
        Show::Active => query.filter(project::Column::ArchivedAt.is_null()),
        Show::Archived => query.filter(project::Column::ArchivedAt.is_not_null()),
        Show::All => query,
    };
    newest_first(query, (project::Column::CreatedAt, project::Column::Id), after, limit).all(db).await
}

/// Returns the projects that have a retention period.
///
/// # Errors
/// Fails when the database fails.
pub async fn with_retention(db: &impl ConnectionTrait, tenant: Uuid) -> Result<Vec<project::Model>, DbErr> {
    project::Entity::find()
        .filter(project::Column::TenantId.eq(tenant))
        .filter(project::Column::RetentionDays.is_not_null())
        .order_by_asc(project::Column::Id)
        .all(db)
        .await
}

/// Returns the next tenant after `last` that has projects with a retention period.
///
/// # Errors
/// Fails when the database fails.
pub async fn next_tenant_with_retention(db: &Db, last: Uuid) -> Result<Option<Uuid>, DbErr> {
    next_tenant(db, "project", "", "retention_days IS NOT NULL", last).await
}

/// Adds a project.
///
/// # Errors
/// Fails when the database fails, or the name is taken.
pub async fn add(db: &impl ConnectionTrait, row: project::Model) -> Result<(), DbErr> {
    project::Entity::insert(row.into_active_model().reset_all()).exec_without_returning(db).await?;
    Ok(())
}

/// Returns whether another project than this one is active.
///
/// # Errors
/// Fails when the database fails.
pub async fn another_is_active(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Result<bool, DbErr> {
    let other = project::Entity::find()
        .filter(project::Column::TenantId.eq(tenant))
        .filter(project::Column::Id.ne(id))
        .filter(project::Column::ArchivedAt.is_null())
        .one(db)
        .await?;
    Ok(other.is_some())
}

/// Returns a project, locked until the transaction ends.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock(
    txn: &impl ConnectionTrait,
    tenant: Uuid,
    id: Uuid,
) -> Result<Option<project::Model>, DbErr> {
    project::Entity::find_by_id((tenant, id)).lock_exclusive().one(txn).await
}

/// Replaces the stored project that has the same key.
///
/// # Errors
/// Fails when the database fails, or the name is taken.
pub async fn replace(db: &impl ConnectionTrait, row: project::Model) -> Result<(), DbErr> {
    row.into_active_model().reset_all().update(db).await?;
    Ok(())
}
