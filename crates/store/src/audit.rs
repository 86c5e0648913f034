//! The audit log. Records are only added and read; nothing here changes or deletes one.

use entities::audit_record;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel, QueryFilter,
    QueryTrait,
};
use uuid::Uuid;

use crate::page::newest_first;

/// The filters of a list of audit records.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Only this action.
    pub action: Option<String>,
    /// Only records of this actor.
    pub actor: Option<String>,
    /// From this time on, microseconds.
    pub from: Option<i64>,
    /// Up to this time, microseconds.
    pub to: Option<i64>,
}

/// Adds a record.
///
/// # Errors
/// Fails when the database fails.
pub async fn add(db: &impl ConnectionTrait, row: audit_record::Model) -> Result<(), DbErr> {
    audit_record::Entity::insert(row.into_active_model().reset_all()).exec_without_returning(db).await?;
    Ok(())
}

/// Returns a page of records, newest first, that begins after the (time, id) of `after`.
///
/// # Errors
/// Fails when the database fails.
pub async fn page(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    filter: &AuditFilter,
    after: Option<(i64, Uuid)>,
    limit: u64,
) -> Result<Vec<audit_record::Model>, DbErr> {
    use audit_record::Column;
    let query = audit_record::Entity::find()
        .filter(Column::TenantId.eq(tenant))
        .apply_if(filter.action.as_deref(), |query, it| query.filter(Column::Action.eq(it)))
        .apply_if(filter.actor.as_deref(), |query, it| query.filter(Column::Actor.eq(it)))
        .apply_if(filter.from, |query, it| query.filter(Column::CreatedAt.gte(it)))
        .apply_if(filter.to, |query, it| query.filter(Column::CreatedAt.lte(it)));
    newest_first(query, (Column::CreatedAt, Column::Id), after, limit).all(db).await
}
