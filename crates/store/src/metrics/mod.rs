//! Metrics: adding what a transaction changed, folding it into nodes, reading both.

pub mod bins;
pub mod delta;
pub mod fact;
mod fold;
pub mod level;
pub mod node;
mod old;
pub mod range;
mod read;
mod rows;
pub mod sums;
pub mod tree;
pub mod wire;

use entities::{metric_delta, trace};
use sea_orm::{ActiveModelTrait, ConnectionTrait, DbErr, EntityTrait, IntoActiveModel};
use uuid::Uuid;

pub use fold::{Folded, fold, waiting};
pub use old::measure;
pub use read::{Reading, StoredNode, read};
pub use rows::{Grouped, Label, Rows, rows};

use crate::metrics::delta::Delta;

/// Adds what the transaction changed. To be called in the transaction that changes the rows of
/// the traces, which it has locked.
///
/// # Errors
/// Fails when the database fails.
pub async fn add(txn: &impl ConnectionTrait, tenant: Uuid, delta: Delta, now: i64) -> Result<(), DbErr> {
    if let Some(row) = delta.row(tenant, now) {
        metric_delta::Entity::insert(row.into_active_model().reset_all()).exec_without_returning(txn).await?;
    }
    Ok(())
}

/// Adds the change of one trace's row.
///
/// # Errors
/// Like [`add`].
pub async fn changed(
    txn: &impl ConnectionTrait,
    before: &trace::Model,
    after: &trace::Model,
    now: i64,
) -> Result<(), DbErr> {
    let mut delta = Delta::default();
    delta.replace(before, after);
    add(txn, after.tenant_id, delta, now).await
}

/// Bytes that can't be read: damaged, or from a version that writes them in another way.
fn unreadable(error: prost::DecodeError) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
}
