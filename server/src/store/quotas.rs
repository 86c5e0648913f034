//! What tenants used of their monthly quotas.

use entities::quota_use;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter};
use uuid::Uuid;

use crate::access::plans::Quota;

/// How much of each quota a tenant used in a month (year * 100 + month); what is missing is 0.
///
/// # Errors
/// When the database fails.
pub async fn used(
    db: &impl ConnectionTrait,
    tenant: Uuid,
    month: i32,
) -> Result<impl Fn(Quota) -> i64, DbErr> {
    let rows = quota_use::Entity::find()
        .filter(quota_use::Column::TenantId.eq(tenant))
        .filter(quota_use::Column::Month.eq(month))
        .all(db)
        .await?;
    Ok(move |quota: Quota| rows.iter().filter(|it| it.quota == quota.as_str()).map(|it| it.used).sum())
}
