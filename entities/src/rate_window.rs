//! Table `rate_window`: how much of a minute's requests the processes took, where there are
//! several of them.

use sea_orm::entity::prelude::*;

/// One bucket in one minute.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "rate_window")]
pub struct Model {
    /// The tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Start of the minute, in seconds since the epoch.
    #[sea_orm(primary_key, auto_increment = false)]
    pub starts_at: i64,
    /// Which routes share it.
    #[sea_orm(primary_key, auto_increment = false)]
    pub bucket: String,
    /// Requests handed to processes so far.
    pub taken: i64,
    /// Requests handed out last; what the statement that took them answers.
    pub granted: i64,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
