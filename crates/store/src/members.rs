//! Members of a tenant and their seats.

use api::{Role, member::MemberStatus};
use entities::member;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel, PaginatorTrait,
    QueryFilter, Set,
};
use uuid::Uuid;

use crate::page::newest_first;

/// Returns the member with this subject.
///
/// # Errors
/// Fails when the database fails.
pub async fn by_subject(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    subject: &str,
) -> Result<Option<member::Model>, DbErr> {
    member::Entity::find()
        .filter(member::Column::TenantId.eq(tenant))
        .filter(member::Column::Subject.eq(subject))
        .one(db)
        .await
}

/// Returns a member.
///
/// # Errors
/// Fails when the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Result<Option<member::Model>, DbErr> {
    member::Entity::find_by_id((tenant, id)).one(db).await
}

/// Returns the number of occupied seats.
///
/// # Errors
/// Fails when the database fails.
pub async fn seats(db: &impl ConnectionTrait, tenant: Uuid) -> Result<u64, DbErr> {
    member::Entity::find()
        .filter(member::Column::TenantId.eq(tenant))
        .filter(member::Column::Status.eq(MemberStatus::Active.as_str()))
        .count(db)
        .await
}

/// Returns a page of members, newest first, that begins after the (time, id) of `after`.
///
/// # Errors
/// Fails when the database fails.
pub async fn page(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    after: Option<(i64, Uuid)>,
    limit: u64,
) -> Result<Vec<member::Model>, DbErr> {
    let query = member::Entity::find().filter(member::Column::TenantId.eq(tenant));
    newest_first(query, (member::Column::CreatedAt, member::Column::Id), after, limit).all(db).await
}

/// Adds a member.
///
/// # Errors
/// Fails when the database fails, or when a member with the subject exists.
pub async fn add(db: &impl ConnectionTrait, row: member::Model) -> Result<(), DbErr> {
    member::Entity::insert(row.into_active_model().reset_all()).exec_without_returning(db).await?;
    Ok(())
}

/// Sets the status of a member.
///
/// # Errors
/// Fails when the database fails.
pub async fn set_status(
    db: &impl ConnectionTrait,
    row: member::Model,
    status: MemberStatus,
    now: i64,
) -> Result<member::Model, DbErr> {
    let mut row = row.into_active_model();
    row.status = Set(status.as_str().to_owned());
    row.updated_at = Set(now);
    row.update(db).await
}

/// Records that a token of the member was used, and the role in this token.
///
/// # Errors
/// Fails when the database fails.
pub async fn seen(
    db: &impl ConnectionTrait,
    row: member::Model,
    role: Role,
    now: i64,
) -> Result<member::Model, DbErr> {
    let mut row = row.into_active_model();
    row.role = Set(role.as_str().to_owned());
    row.last_seen_at = Set(now);
    row.update(db).await
}
