//! Tenants.

use api::Plan;
use entities::tenant;
use sea_orm::{
    ActiveModelTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel, PaginatorTrait, QueryOrder, Set,
};
use uuid::Uuid;

/// One tenant.
///
/// # Errors
/// When the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid) -> Result<Option<tenant::Model>, DbErr> {
    tenant::Entity::find_by_id(tenant).one(db).await
}

/// All tenants, oldest first. For administration: nothing on a user's path lists tenants.
///
/// # Errors
/// When the database fails.
pub async fn all(db: &impl ConnectionTrait) -> Result<Vec<tenant::Model>, DbErr> {
    tenant::Entity::find()
        .order_by_asc(tenant::Column::CreatedAt)
        .order_by_asc(tenant::Column::TenantId)
        .all(db)
        .await
}

/// Whether there is no tenant at all.
///
/// # Errors
/// When the database fails.
pub async fn none(db: &impl ConnectionTrait) -> Result<bool, DbErr> {
    Ok(tenant::Entity::find().count(db).await? == 0)
}

/// Adds a tenant.
///
/// # Errors
/// When the database fails.
pub async fn add(db: &impl ConnectionTrait, row: tenant::Model) -> Result<(), DbErr> {
    tenant::Entity::insert(row.into_active_model().reset_all()).exec_without_returning(db).await?;
    Ok(())
}

/// Changes a tenant's plan; none if there is no such tenant.
///
/// # Errors
/// When the database fails.
pub async fn set_plan(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    plan: Plan,
) -> Result<Option<tenant::Model>, DbErr> {
    let Some(row) = get(db, tenant).await? else { return Ok(None) };
    let mut row = row.into_active_model();
    row.plan = Set(plan.as_str().to_owned());
    Ok(Some(row.update(db).await?))
}
