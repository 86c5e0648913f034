//! Evaluators that tenants made.

use entities::evaluator::{Column, Entity, Model};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QueryOrder, QuerySelect,
};
use uuid::Uuid;

/// One evaluator, unless it was deleted.
///
/// # Errors
/// When the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid, name: &str) -> Result<Option<Model>, DbErr> {
    Ok(Entity::find_by_id((tenant, name.to_owned())).one(db).await?.filter(|it| it.deleted_at.is_none()))
}

/// One evaluator, deleted or not, locked until the transaction ends.
///
/// # Errors
/// When the database fails.
pub async fn lock(txn: &DatabaseTransaction, tenant: Uuid, name: &str) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, name.to_owned())).lock_exclusive().one(txn).await
}

/// All that are there.
///
/// # Errors
/// When the database fails.
pub async fn all(db: &impl ConnectionTrait, tenant: Uuid) -> Result<Vec<Model>, DbErr> {
    let query = Entity::find().filter(Column::TenantId.eq(tenant)).filter(Column::DeletedAt.is_null());
    query.order_by_asc(Column::Name).all(db).await
}

/// Stores an evaluator that was never there.
///
/// # Errors
/// When the database fails; a taken name is a duplicate.
pub async fn add(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    Entity::insert(row.into_active_model().reset_all()).exec_without_returning(txn).await?;
    Ok(())
}

/// Stores an evaluator in place of the one with its name.
///
/// # Errors
/// When the database fails.
pub async fn replace(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    row.into_active_model().reset_all().update(txn).await?;
    Ok(())
}
