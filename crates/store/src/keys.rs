//! API keys.

use std::sync::Arc;

use api::{Plan, Role, Scope, enums::UnknownWord};
use entities::api_key;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, ExprTrait, IntoActiveModel,
    QueryFilter, sea_query::Expr,
};
use uuid::Uuid;

use crate::page::newest_first;

/// An API key with the plan of its tenant.
#[derive(Clone, Debug)]
pub struct KeyWithPlan {
    /// The key's ID.
    pub id: Uuid,
    /// The tenant.
    pub tenant_id: Uuid,
    /// The plan of its tenant.
    pub plan: Plan,
    /// The project that receives the traces sent with it.
    pub project_id: Uuid,
    /// The role of the user who created it.
    pub role: Role,
    /// Restrictions; empty means full access.
    pub scopes: Arc<[Scope]>,
    /// The time at which the key expires, in microseconds.
    pub expires_at: Option<i64>,
}

/// Returns the API key with this hash, unless it was revoked. The caller checks whether it has expired.
///
/// # Errors
/// Fails when the database fails.
pub async fn by_hash(db: &impl ConnectionTrait, hash: &[u8; 32]) -> Result<Option<Arc<KeyWithPlan>>, DbErr> {
    let found = api_key::Entity::find()
        .filter(api_key::Column::Hash.eq(hash.to_vec()))
        .filter(api_key::Column::RevokedAt.is_null())
        .one(db)
        .await?;
    let Some(key) = found else { return Ok(None) };
    // A separate statement, because it names the tenant, by which a sharded database finds the machine.
    let Some(tenant) = super::tenants::get(db, key.tenant_id).await? else { return Ok(None) };
    let unreadable = |it: UnknownWord| DbErr::Type(it.to_string());
    let scopes = key.scopes.split(',').filter(|it| !it.is_empty()).map(str::parse::<Scope>);
    Ok(Some(Arc::new(KeyWithPlan {
        id: key.id,
        tenant_id: key.tenant_id,
        plan: tenant.plan.parse().map_err(unreadable)?,
        project_id: key.project_id,
        role: key.role.parse().map_err(unreadable)?,
        scopes: scopes.collect::<Result<_, _>>().map_err(unreadable)?,
        expires_at: key.expires_at,
    })))
}

/// Returns an API key of a tenant, unless it was revoked.
///
/// # Errors
/// Fails when the database fails.
pub async fn get(db: &impl ConnectionTrait, tenant: Uuid, id: Uuid) -> Result<Option<api_key::Model>, DbErr> {
    of_tenant(tenant).filter(api_key::Column::Id.eq(id)).one(db).await
}

/// Returns a page of keys that are not revoked, newest first, beginning after the (time, id) of `after`.
///
/// # Errors
/// Fails when the database fails.
pub async fn page(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    after: Option<(i64, Uuid)>,
    limit: u64,
) -> Result<Vec<api_key::Model>, DbErr> {
    let place = (api_key::Column::CreatedAt, api_key::Column::Id);
    newest_first(of_tenant(tenant), place, after, limit).all(db).await
}

/// Adds a key.
///
/// # Errors
/// Fails when the database fails.
pub async fn add(db: &impl ConnectionTrait, row: api_key::Model) -> Result<(), DbErr> {
    api_key::Entity::insert(row.into_active_model().reset_all()).exec_without_returning(db).await?;
    Ok(())
}

/// Revokes a key. Returns false if there is no such key or it is revoked already.
///
/// # Errors
/// Fails when the database fails.
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
