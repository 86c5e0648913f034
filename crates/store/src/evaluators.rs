//! Evaluators that tenants made.

use entities::evaluator::{Column, Entity, Model};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QueryOrder, QuerySelect, sea_query::Expr,
};
use uuid::Uuid;

/// One evaluator, unless it was deleted.
///
/// # Errors
/// Fails when the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid, name: &str) -> Result<Option<Model>, DbErr> {
    Ok(Entity::find_by_id((tenant, name.to_owned())).one(db).await?.filter(|it| it.deleted_at.is_none()))
}

/// One evaluator, deleted or not, locked until the transaction ends.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock(txn: &DatabaseTransaction, tenant: Uuid, name: &str) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, name.to_owned())).lock_exclusive().one(txn).await
}

/// All that are there.
///
/// # Errors
/// Fails when the database fails.
pub async fn all(db: &impl ConnectionTrait, tenant: Uuid) -> Result<Vec<Model>, DbErr> {
    let query = Entity::find().filter(Column::TenantId.eq(tenant)).filter(Column::DeletedAt.is_null());
    query.order_by_asc(Column::Name).all(db).await
}

/// Bytes that the definitions of all take up together, and how many there are.
///
/// # Errors
/// Fails when the database fails.
pub async fn space(db: &impl ConnectionTrait, tenant: Uuid) -> Result<(usize, usize), DbErr> {
    let query = Entity::find()
        .select_only()
        .expr(Expr::cust("CAST(COALESCE(SUM(octet_length(definition)), 0) AS BIGINT)"))
        .expr(Expr::cust("COUNT(*)"))
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::DeletedAt.is_null());
    let (bytes, count): (i64, i64) = query.into_tuple().one(db).await?.unwrap_or_default();
    Ok((usize::try_from(bytes).unwrap_or(0), usize::try_from(count).unwrap_or(0)))
}

/// Stores an evaluator that was never there.
///
/// # Errors
/// Fails when the database fails; a taken name is a duplicate.
pub async fn add(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    Entity::insert(row.into_active_model().reset_all()).exec_without_returning(txn).await?;
    Ok(())
}

/// Stores an evaluator in place of the one with its name.
///
/// # Errors
/// Fails when the database fails.
pub async fn replace(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    row.into_active_model().reset_all().update(txn).await?;
    Ok(())
}
