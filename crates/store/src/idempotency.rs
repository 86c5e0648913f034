//! Idempotency keys and their responses.

use entities::idempotency::{ActiveModel, Column, Entity, Model};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel, QueryFilter, Set,
    TryInsertResult,
};

use crate::housekeeping::ExpiringRows;

/// Keys whose response or claim has expired.
pub const EXPIRING_KEYS: ExpiringRows = ExpiringRows::of("idempotency", "expires_at");

/// Claims an idempotency key for the request of `row`. Returns the row that holds the key already; a released
/// or expired one does not hold it. While other requests keep claiming and releasing the key, the result is a
/// copy of `row`, without a response.
///
/// # Errors
/// Fails when the database fails.
pub async fn claim(db: &impl ConnectionTrait, row: &Model, now: i64) -> Result<Option<Model>, DbErr> {
    // Two attempts, because the row that caused the conflict may be gone when it is read.
    for _ in 0..2 {
        Entity::delete_many()
            .filter(Column::TenantId.eq(row.tenant_id))
            .filter(Column::KeyHash.eq(row.key_hash.clone()))
            .filter(Column::ExpiresAt.lte(now))
            .exec(db)
            .await?;
        let inserted = Entity::insert(row.clone().into_active_model().reset_all())
            .on_conflict_do_nothing_on([Column::TenantId, Column::KeyHash])
            .exec_without_returning(db)
            .await?;
        if matches!(inserted, TryInsertResult::Inserted(1..)) {
            return Ok(None);
        }
        let found = Entity::find_by_id((row.tenant_id, row.key_hash.clone())).one(db).await?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(Some(row.clone()))
}

/// Stores the response of the request that holds the key. Returns whether the request still holds it.
///
/// # Errors
/// Fails when the database fails.
pub async fn answer(db: &impl ConnectionTrait, row: Model) -> Result<bool, DbErr> {
    let answer = ActiveModel {
        status: Set(row.status),
        content_type: Set(row.content_type),
        answer: Set(row.answer),
        expires_at: Set(row.expires_at),
        ..Default::default()
    };
    let updated = Entity::update_many()
        .set(answer)
        .filter(Column::TenantId.eq(row.tenant_id))
        .filter(Column::KeyHash.eq(row.key_hash))
        .filter(Column::Holder.eq(row.holder))
        .exec(db)
        .await?;
    Ok(updated.rows_affected > 0)
}

/// Releases a key without a response. Returns whether the request still held it.
///
/// # Errors
/// Fails when the database fails.
pub async fn release(db: &impl ConnectionTrait, row: &Model) -> Result<bool, DbErr> {
    let deleted = Entity::delete_many()
        .filter(Column::TenantId.eq(row.tenant_id))
        .filter(Column::KeyHash.eq(row.key_hash.clone()))
        .filter(Column::Holder.eq(row.holder))
        .exec(db)
        .await?;
    Ok(deleted.rows_affected > 0)
}
