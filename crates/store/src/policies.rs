//! Policies of the control loop.

use entities::policy::{Column, Entity, Model};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
};
use uuid::Uuid;

use crate::page::newest_first;

/// Returns a policy.
///
/// # Errors
/// Fails when the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).one(db).await
}

/// Returns a policy, locked until the transaction ends.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock(txn: &DatabaseTransaction, tenant: Uuid, id: Uuid) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).lock_exclusive().one(txn).await
}

/// Returns all enabled policies of a tenant that have a trigger, oldest first.
///
/// # Errors
/// Fails when the database fails.
pub async fn triggered(db: &impl ConnectionTrait, tenant: Uuid) -> Result<Vec<Model>, DbErr> {
    let query = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Enabled.eq(true))
        .filter(Column::TriggerType.is_not_null());
    query.order_by_asc(Column::CreatedAt).order_by_asc(Column::Id).all(db).await
}

/// Returns a page of policies, newest first.
///
/// # Errors
/// Fails when the database fails.
pub async fn page(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    project: Option<Uuid>,
    after: Option<(i64, Uuid)>,
    limit: u64,
) -> Result<Vec<Model>, DbErr> {
    let query = Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .apply_if(project, |query, it| query.filter(Column::ProjectId.eq(it)));
    newest_first(query, (Column::CreatedAt, Column::Id), after, limit).all(db).await
}

/// Returns the number of a tenant's policies.
///
/// # Errors
/// Fails when the database fails.
pub async fn count(db: &impl ConnectionTrait, tenant: Uuid) -> Result<u64, DbErr> {
    Entity::find().filter(Column::TenantId.eq(tenant)).count(db).await
}

/// Stores a new policy.
///
/// # Errors
/// Fails when the database fails.
pub async fn add(txn: &impl ConnectionTrait, row: Model) -> Result<(), DbErr> {
    Entity::insert(row.into_active_model().reset_all()).exec_without_returning(txn).await?;
    Ok(())
}

/// Replaces the stored policy that has the same id.
///
/// # Errors
/// Fails when the database fails.
pub async fn replace(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    row.into_active_model().reset_all().update(txn).await?;
    Ok(())
}

/// Deletes a policy. Its actions remain. Returns false if there is no such policy.
///
/// # Errors
/// Fails when the database fails.
pub async fn delete(txn: &DatabaseTransaction, tenant: Uuid, id: Uuid) -> Result<bool, DbErr> {
    Ok(Entity::delete_by_id((tenant, id)).exec(txn).await?.rows_affected > 0)
}
