//! Table `job`: background work; see the crate `queue`.

use sea_orm::entity::prelude::*;

/// A job.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "job")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// A time-ordered UUID.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The queue whose workers run it.
    pub lane: String,
    /// The kind of the job.
    pub kind: String,
    /// The payload, as JSON.
    pub payload: String,
    /// `ready`, `running` or `dead`. Finished jobs are deleted.
    pub status: String,
    /// Earliest start, microseconds.
    pub run_at: i64,
    /// Number of attempts, not counting snoozes.
    pub attempts: i32,
    /// Number of attempts after which the job is dead.
    pub max_attempts: i32,
    /// While running: end of the worker's lease, microseconds.
    pub lease_until: Option<i64>,
    /// Fencing token: grows with each claim; only the holder of the latest claim may finish the job.
    pub fence: i64,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    /// Microseconds.
    pub created_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
