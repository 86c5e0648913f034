//! Bulk runs of evaluators.

use entities::eval_bulk::{Entity, Model};
use sea_orm::{
    ActiveModelTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel, QuerySelect,
};
use uuid::Uuid;

/// One run.
///
/// # Errors
/// When the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).one(db).await
}

/// One run, locked until the transaction ends.
///
/// # Errors
/// When the database fails.
pub async fn lock(txn: &DatabaseTransaction, tenant: Uuid, id: Uuid) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).lock_exclusive().one(txn).await
}

/// Stores a new run.
///
/// # Errors
/// When the database fails.
pub async fn add(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    Entity::insert(row.into_active_model().reset_all()).exec_without_returning(txn).await?;
    Ok(())
}

/// Stores a run in place of the one with its id.
///
/// # Errors
/// When the database fails.
pub async fn replace(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    row.into_active_model().reset_all().update(txn).await?;
    Ok(())
}
