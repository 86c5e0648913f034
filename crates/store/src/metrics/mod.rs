//! Metrics: stores the deltas of transactions, folds them into nodes, and reads both.

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

use crate::metrics::delta::Delta;

pub use fold::{FoldProgress, fold, waiting};
pub use old::{measure, next_tenant_to_measure};
pub use read::{Reading, StoredNode, read};
pub use rows::{Grouped, Label, Rows, rows};

/// Stores the delta of a transaction. Call this in the transaction that changes the rows of the traces and
/// has locked them.
///
/// # Errors
/// Fails when the database fails.
pub async fn add(txn: &impl ConnectionTrait, tenant: Uuid, delta: Delta, now: i64) -> Result<(), DbErr> {
    if let Some(row) = delta.row(tenant, now) {
        metric_delta::Entity::insert(row.into_active_model().reset_all()).exec_without_returning(txn).await?;
    }
    Ok(())
}

/// Stores the delta of a change to one trace's row.
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

/// Returns the error for bytes that are damaged or have an unknown encoding.
fn unreadable(error: prost::DecodeError) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
}
