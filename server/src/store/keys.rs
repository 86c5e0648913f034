//! API keys.

use entities::{api_key, project, tenant};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, ExprTrait,
    IntoActiveModel, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr,
};
use uuid::Uuid;

/// A key with what deciding about a request needs.
#[derive(Clone, Debug)]
pub struct KnownKey {
    /// The key.
    pub key: api_key::Model,
    /// Its tenant.
    pub tenant: tenant::Model,
    /// Its project.
    pub project: project::Model,
}

/// The key of this hash, whether it still works or not.
///
/// # Errors
/// When the database fails.
pub async fn by_hash(db: &impl ConnectionTrait, hash: &[u8; 32]) -> Result<Option<KnownKey>, DbErr> {
    let found = api_key::Entity::find().filter(api_key::Column::Hash.eq(hash.to_vec())).one(db).await?;
    let Some(key) = found else { return Ok(None) };
    let tenant = super::tenants::get(db, key.tenant_id).await?;
    let project = super::projects::get(db, key.tenant_id, key.project_id).await?;
    Ok(tenant.zip(project).map(|(tenant, project)| KnownKey { key, tenant, project }))
}

/// One key of a tenant that is not revoked.
///
/// # Errors
/// When the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Result<Option<api_key::Model>, DbErr> {
    of_tenant(tenant).filter(api_key::Column::Id.eq(id)).one(db).await
}

/// A page of keys that are not revoked, newest first, after the (time, id) of `after`.
///
/// # Errors
/// When the database fails.
pub async fn page(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    after: Option<(i64, Uuid)>,
    limit: u64,
) -> Result<Vec<api_key::Model>, DbErr> {
    let mut query = of_tenant(tenant);
    if let Some((at, id)) = after {
        let older = Condition::any()
            .add(api_key::Column::CreatedAt.lt(at))
            .add(Condition::all().add(api_key::Column::CreatedAt.eq(at)).add(api_key::Column::Id.lt(id)));
        query = query.filter(older);
    }
    query
        .order_by_desc(api_key::Column::CreatedAt)
        .order_by_desc(api_key::Column::Id)
        .limit(limit)
        .all(db)
        .await
}

/// Adds a key.
///
/// # Errors
/// When the database fails.
pub async fn add(db: &impl ConnectionTrait, row: api_key::Model) -> Result<(), DbErr> {
    api_key::Entity::insert(row.into_active_model().reset_all()).exec_without_returning(db).await?;
    Ok(())
}

/// Revokes a key. False if there is no such key or it was revoked before.
///
/// # Errors
/// When the database fails.
pub async fn revoke(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid, now: i64) -> Result<bool, DbErr> {
    let done = api_key::Entity::update_many()
        .col_expr(api_key::Column::RevokedAt, Expr::value(now))
        .filter(api_key::Column::TenantId.eq(tenant))
        .filter(api_key::Column::Id.eq(id))
        .filter(Expr::col(api_key::Column::RevokedAt).is_null())
        .exec(db)
        .await?;
    Ok(done.rows_affected > 0)
}

fn of_tenant(tenant: Uuid) -> sea_orm::Select<api_key::Entity> {
    api_key::Entity::find()
        .filter(api_key::Column::TenantId.eq(tenant))
        .filter(api_key::Column::RevokedAt.is_null())
}
