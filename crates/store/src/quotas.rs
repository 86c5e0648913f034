//! The tenants' use of monthly quotas.
//!
//! If the plan has a limit, one row has the count. A transaction that increments it locks it until its end,
//! so the limit is never exceeded. Without a limit, each transaction inserts its own row, without waiting.
//!
//! The statement is SQL, because it inserts or updates a row and returns a sum over others.

use entities::quota_use;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter, Statement,
};
use uuid::Uuid;

use crate::ids::new_id;

/// A monthly quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quota {
    /// Traces stored.
    Traces,
    /// LLM evaluations.
    LlmEvaluations,
}

impl Quota {
    /// Returns the word in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::LlmEvaluations => "llm_evaluations",
        }
    }
}

/// Returns the calendar month (UTC) of a time in microseconds, as year * 100 + month.
pub fn month(micros: i64) -> i32 {
    use chrono::Datelike;
    chrono::DateTime::from_timestamp_micros(micros)
        .and_then(|it| it.year().checked_mul(100)?.checked_add(i32::try_from(it.month()).ok()?))
        .unwrap_or_default()
}

/// The slot of the row that counts a quota with a limit. The other slots let writers count without waiting
/// for each other.
pub const LIMITED_SLOT: i16 = 0;

/// Adds to the use of a slot and returns the sum over all slots.
pub(super) const ADD_USE_SQL: &str = "\
    INSERT INTO quota_use AS q (tenant_id, month, quota, slot, used) VALUES ($1, $2, $3, $4, $5) \
    ON CONFLICT (tenant_id, month, quota, slot) DO UPDATE SET used = q.used + excluded.used \
    RETURNING used + (SELECT CAST(COALESCE(SUM(o.used), 0) AS BIGINT) FROM quota_use o \
    WHERE o.tenant_id = $1 AND o.month = $2 AND o.quota = $3 AND o.slot <> $4) AS total";

/// Returns a slot for counting without a limit, so that writers rarely wait for each other.
pub fn own_slot() -> i16 {
    i16::try_from(new_id().as_u128() % 30).unwrap_or_default() + 1
}

/// Returns the use of each quota of a tenant in a month (year * 100 + month). A missing quota has no use.
///
/// # Errors
/// Fails when the database fails.
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

/// Reserves up to `wanted` units of a month's quota, in the transaction that uses them. Returns how many were
/// available.
///
/// # Errors
/// Fails when the database fails.
pub async fn reserve(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    month: i32,
    quota: Quota,
    limit: Option<u64>,
    wanted: i64,
) -> Result<i64, DbErr> {
    if wanted == 0 {
        return Ok(0);
    }
    let Some(limit) = limit.map(|it| i64::try_from(it).unwrap_or(i64::MAX)) else {
        add(txn, tenant, month, quota, own_slot(), wanted).await?;
        return Ok(wanted);
    };
    let total = add(txn, tenant, month, quota, LIMITED_SLOT, wanted).await?;
    let granted = (limit - (total - wanted)).clamp(0, wanted);
    if granted < wanted {
        add(txn, tenant, month, quota, LIMITED_SLOT, granted - wanted).await?;
    }
    Ok(granted)
}

/// Releases reserved units of a quota that were not used.
///
/// # Errors
/// Fails when the database fails.
pub async fn release(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    month: i32,
    quota: Quota,
    count: i64,
) -> Result<(), DbErr> {
    if count > 0 {
        add(txn, tenant, month, quota, LIMITED_SLOT, -count).await?;
    }
    Ok(())
}

async fn add(
    txn: &DatabaseTransaction,
    tenant: Uuid,
    month: i32,
    quota: Quota,
    slot: i16,
    more: i64,
) -> Result<i64, DbErr> {
    let values = [tenant.into(), month.into(), quota.as_str().into(), slot.into(), more.into()];
    let statement = Statement::from_sql_and_values(txn.get_database_backend(), ADD_USE_SQL, values);
    let row = txn.query_one_raw(statement).await?;
    row.ok_or_else(|| DbErr::RecordNotFound("quota use".to_owned()))?.try_get("", "total")
}
