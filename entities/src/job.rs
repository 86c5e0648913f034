//! Table `job`: work that has to be done, see the server's queue.

use sea_orm::entity::prelude::*;

/// One piece of work.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "job")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// A time-ordered UUID.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// Which workers take it.
    pub lane: String,
    /// What is to be done.
    pub kind: String,
    /// Its arguments, as JSON.
    pub payload: String,
    /// `ready`, `running` or `dead`. What is done is deleted.
    pub status: String,
    /// Not before, microseconds.
    pub run_at: i64,
    /// Times it was begun, snoozes not counted.
    pub attempts: i32,
    /// Dead after so many.
    pub max_attempts: i32,
    /// While running: whose turn it is until, microseconds.
    pub lease_until: Option<i64>,
    /// Grows with each claim; only the holder of the newest may finish it.
    pub fence: i64,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    /// Microseconds.
    pub created_at: i64,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
