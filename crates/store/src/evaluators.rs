//! Custom evaluators.

use entities::evaluator::{Column, Entity, Model};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QueryOrder, QuerySelect, sea_query::Expr,
};
use uuid::Uuid;

/// Returns a custom evaluator, unless it was deleted.
///
/// # Errors
/// Fails when the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid, name: &str) -> Result<Option<Model>, DbErr> {
    Ok(Entity::find_by_id((tenant, name.to_owned())).one(db).await?.filter(|it| it.deleted_at.is_none()))
}

/// Returns a custom evaluator, deleted or not, locked until the transaction ends.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock(txn: &DatabaseTransaction, tenant: Uuid, name: &str) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, name.to_owned())).lock_exclusive().one(txn).await
}

/// Returns all custom evaluators of a tenant that were not deleted.
///
/// # Errors
/// Fails when the database fails.
pub async fn all(db: &impl ConnectionTrait, tenant: Uuid) -> Result<Vec<Model>, DbErr> {
    let query = Entity::find().filter(Column::TenantId.eq(tenant)).filter(Column::DeletedAt.is_null());
    query.order_by_asc(Column::Name).all(db).await
}

/// Returns the total size of a tenant's evaluator definitions in bytes, and their number.
///
/// # Errors
/// Fails when the database fails.
pub async fn stored_bytes(db: &impl ConnectionTrait, tenant: Uuid) -> Result<(usize, usize), DbErr> {
    let query = Entity::find()
        .select_only()
        .expr(Expr::cust("CAST(COALESCE(SUM(octet_length(definition)), 0) AS BIGINT)"))
        .expr(Expr::cust("COUNT(*)"))
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::DeletedAt.is_null());
    let (bytes, count): (i64, i64) = query.into_tuple().one(db).await?.unwrap_or_default();
    Ok((usize::try_from(bytes).unwrap_or(0), usize::try_from(count).unwrap_or(0)))
}

/// Stores a new custom evaluator.
///
/// # Errors
/// Fails when the database fails; a name that exists is a duplicate.
pub async fn add(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    Entity::insert(row.into_active_model().reset_all()).exec_without_returning(txn).await?;
    Ok(())
}

/// Replaces the stored evaluator that has the same name.
///
/// # Errors
/// Fails when the database fails.
pub async fn replace(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    row.into_active_model().reset_all().update(txn).await?;
    Ok(())
}
