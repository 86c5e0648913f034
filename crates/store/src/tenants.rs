//! Tenants.

use api::Plan;
use entities::{external_tenant, tenant};
use sea_orm::{
    ActiveModelTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    PaginatorTrait, QueryOrder, QuerySelect, Set, sea_query::LockType,
};
use uuid::Uuid;

use crate::eval_rules;

/// Returns a tenant.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid) -> Result<Option<tenant::Model>, DbErr> {
    tenant::Entity::find_by_id(tenant).one(db).await
}

/// Returns the tenant with this ID at an identity provider.
///
/// # Errors
/// Fails when the database fails.
pub async fn by_external_id(db: &impl ConnectionTrait, external_id: &str) -> Result<Option<Uuid>, DbErr> {
    let found = external_tenant::Entity::find_by_id(external_id.to_owned()).one(db).await?;
    Ok(found.map(|it| it.tenant_id))
}

/// Returns all tenants, oldest first. For administration only: no request of a user lists tenants.
///
/// # Errors
/// Fails when the database fails.
pub async fn all(db: &impl ConnectionTrait) -> Result<Vec<tenant::Model>, DbErr> {
    tenant::Entity::find()
        .order_by_asc(tenant::Column::CreatedAt)
        .order_by_asc(tenant::Column::TenantId)
        .all(db)
        .await
}

/// Returns the tenant that was created first.
///
/// # Errors
/// Fails when the database fails.
pub async fn oldest(db: &impl ConnectionTrait) -> Result<Option<tenant::Model>, DbErr> {
    tenant::Entity::find()
        .order_by_asc(tenant::Column::CreatedAt)
        .order_by_asc(tenant::Column::TenantId)
        .one(db)
        .await
}

/// Returns whether there are no tenants.
///
/// # Errors
/// Fails when the database fails.
pub async fn none(db: &impl ConnectionTrait) -> Result<bool, DbErr> {
    Ok(tenant::Entity::find().count(db).await? == 0)
}

/// Returns a tenant, locked until the transaction ends. Transactions that count rows before they insert more use this
/// to exclude each other.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock(txn: &impl ConnectionTrait, tenant: Uuid) -> Result<Option<tenant::Model>, DbErr> {
    // Not `FOR UPDATE`: it would also block transactions that insert rows with a foreign key to the
    // tenant, and two transactions that insert the same project would deadlock.
    tenant::Entity::find_by_id(tenant).lock(LockType::NoKeyUpdate).one(txn).await
}

/// Adds a tenant.
///
/// # Errors
/// Fails when the database fails, or another tenant has the external id.
pub async fn add(db: &impl ConnectionTrait, row: tenant::Model) -> Result<(), DbErr> {
    if let Some(external_id) = row.external_id.clone() {
        let name = external_tenant::Model { external_id, tenant_id: row.tenant_id };
        external_tenant::Entity::insert(name.into_active_model().reset_all())
            .exec_without_returning(db)
            .await?;
    }
    tenant::Entity::insert(row.into_active_model().reset_all()).exec_without_returning(db).await?;
    Ok(())
}

/// Changes a tenant's plan. Returns `None` if there is no such tenant. Resumes the tenant's paused eval
/// rules, because the plan decides which judge is used.
///
/// # Errors
/// Fails when the database fails.
pub async fn set_plan(
    db: &DatabaseTransaction,
    tenant: Uuid,
    plan: Plan,
) -> Result<Option<tenant::Model>, DbErr> {
    let Some(row) = get(db, tenant).await? else { return Ok(None) };
    eval_rules::resume_all(db, tenant).await?;
    let mut row = row.into_active_model();
    row.plan = Set(plan.as_str().to_owned());
    Ok(Some(row.update(db).await?))
}
