//! Webhooks. Callers pass secrets that are sealed already.

pub mod deliveries;

use entities::webhook::{Column, Entity, Model};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, Select, sea_query::Expr,
};
use uuid::Uuid;

use crate::page::newest_first;

/// Returns a webhook.
///
/// # Errors
/// Fails when the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).one(db).await
}

/// Returns a webhook, locked until the transaction ends.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock(txn: &DatabaseTransaction, tenant: Uuid, id: Uuid) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, id)).lock_exclusive().one(txn).await
}

/// Returns those of the webhooks that exist.
///
/// # Errors
/// Fails when the database fails.
pub async fn some(db: &impl ConnectionTrait, tenant: Uuid, ids: &[Uuid]) -> Result<Vec<Model>, DbErr> {
    those(tenant, ids).all(db).await
}

/// Returns those of the webhooks that exist, locked in the order of their IDs until the transaction ends.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock_all(txn: &DatabaseTransaction, tenant: Uuid, ids: &[Uuid]) -> Result<Vec<Model>, DbErr> {
    those(tenant, ids).order_by_asc(Column::Id).lock_exclusive().all(txn).await
}

fn those(tenant: Uuid, ids: &[Uuid]) -> Select<Entity> {
    Entity::find().filter(Column::TenantId.eq(tenant)).filter(Column::Id.is_in(ids.iter().copied()))
}

/// Returns the enabled webhooks of a tenant: their IDs and their events, ordered by ID.
///
/// # Errors
/// Fails when the database fails.
pub async fn enabled(db: &impl ConnectionTrait, tenant: Uuid) -> Result<Vec<(Uuid, String)>, DbErr> {
    Entity::find()
        .select_only()
        .columns([Column::Id, Column::Events])
        .filter(Column::TenantId.eq(tenant))
        .filter(Column::Enabled.eq(true))
        .order_by_asc(Column::Id)
        .into_tuple()
        .all(db)
        .await
}

/// Returns a page of webhooks, newest first.
///
/// # Errors
/// Fails when the database fails.
pub async fn page(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    after: Option<(i64, Uuid)>,
    limit: u64,
) -> Result<Vec<Model>, DbErr> {
    let query = Entity::find().filter(Column::TenantId.eq(tenant));
    newest_first(query, (Column::CreatedAt, Column::Id), after, limit).all(db).await
}

/// Returns the number of a tenant's webhooks.
///
/// # Errors
/// Fails when the database fails.
pub async fn count(db: &impl ConnectionTrait, tenant: Uuid) -> Result<u64, DbErr> {
    Entity::find().filter(Column::TenantId.eq(tenant)).count(db).await
}

/// Stores a new webhook.
///
/// # Errors
/// Fails when the database fails.
pub async fn add(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    Entity::insert(row.into_active_model().reset_all()).exec_without_returning(txn).await?;
    Ok(())
}

/// Replaces the stored webhook that has the same ID.
///
/// # Errors
/// Fails when the database fails.
pub async fn replace(txn: &DatabaseTransaction, row: Model) -> Result<(), DbErr> {
    row.into_active_model().reset_all().update(txn).await?;
    Ok(())
}

/// Deletes a webhook. Returns false if there is no such webhook.
///
/// # Errors
/// Fails when the database fails.
pub async fn delete(txn: &DatabaseTransaction, tenant: Uuid, id: Uuid) -> Result<bool, DbErr> {
    Ok(Entity::delete_by_id((tenant, id)).exec(txn).await?.rows_affected > 0)
}

/// Stores the results of attempts for webhooks with equal results: the time of the last success, if there is a new
/// one, and the time since which attempts fail.
///
/// # Errors
/// Fails when the database fails.
pub async fn record_attempts(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    ids: &[Uuid],
    last_delivery_at: Option<i64>,
    failing_since: Option<i64>,
) -> Result<(), DbErr> {
    let update = Entity::update_many().col_expr(Column::FailingSince, Expr::value(failing_since));
    let update = match last_delivery_at {
        Some(at) => update.col_expr(Column::LastDeliveryAt, Expr::value(at)),
        None => update,
    };
    let ids = ids.iter().copied();
    update.filter(Column::TenantId.eq(tenant)).filter(Column::Id.is_in(ids)).exec(txn).await?;
    Ok(())
}

/// Stores that a webhook is disabled: `enabled`, `disabled_reason` and `updated_at` of its row.
///
/// # Errors
/// Fails when the database fails.
pub async fn disable(txn: &DatabaseTransaction, row: &Model) -> Result<(), DbErr> {
    Entity::update_many()
        .col_expr(Column::Enabled, Expr::value(row.enabled))
        .col_expr(Column::DisabledReason, Expr::value(row.disabled_reason.clone()))
        .col_expr(Column::UpdatedAt, Expr::value(row.updated_at))
        .filter(Column::TenantId.eq(row.tenant_id))
        .filter(Column::Id.eq(row.id))
        .exec(txn)
        .await?;
    Ok(())
}
