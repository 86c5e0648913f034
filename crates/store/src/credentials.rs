//! Credentials of tenants for model providers. Callers pass keys that are sealed already.

use api::credential::Provider;
use entities::provider_credential::{Column, Entity, Model};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel, QueryFilter,
    QueryOrder, QuerySelect, sea_query::OnConflict,
};
use uuid::Uuid;

/// Returns all credentials of a tenant, by provider.
///
/// # Errors
/// Fails when the database fails.
pub async fn all(db: &impl ConnectionTrait, tenant: Uuid) -> Result<Vec<Model>, DbErr> {
    Entity::find().filter(Column::TenantId.eq(tenant)).order_by_asc(Column::Provider).all(db).await
}

/// Returns a credential, locked until the transaction ends.
///
/// # Errors
/// Fails when the database fails.
pub async fn lock(
    txn: &impl ConnectionTrait,
    tenant: Uuid,
    provider: Provider,
) -> Result<Option<Model>, DbErr> {
    Entity::find_by_id((tenant, provider.as_str().to_owned())).lock_exclusive().one(txn).await
}

/// Stores a credential, replacing the one with the same key.
///
/// # Errors
/// Fails when the database fails.
pub async fn set(db: &impl ConnectionTrait, row: Model) -> Result<(), DbErr> {
    let rest = [
        Column::SealedKey,
        Column::Hint,
        Column::BaseUrl,
        Column::JudgeModelCheap,
        Column::JudgeModelPremium,
        Column::EmbeddingModel,
        Column::UpdatedAt,
    ];
    Entity::insert(row.into_active_model().reset_all())
        .on_conflict(
            OnConflict::columns([Column::TenantId, Column::Provider]).update_columns(rest).to_owned(),
        )
        .exec_without_returning(db)
        .await?;
    Ok(())
}

/// Deletes a credential. Returns false if there is none.
///
/// # Errors
/// Fails when the database fails.
pub async fn delete(db: &impl ConnectionTrait, tenant: Uuid, provider: Provider) -> Result<bool, DbErr> {
    let done = Entity::delete_by_id((tenant, provider.as_str().to_owned())).exec(db).await?;
    Ok(done.rows_affected > 0)
}

/// Returns the part of a key that is shown: its last 4 characters. Of a short key, even these would reveal
/// much.
pub fn last4(key: &str) -> String {
    if key.len() < 12 { String::new() } else { key.chars().skip(key.len() - 4).collect() }
}
