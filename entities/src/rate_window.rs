//! Table `rate_window`: requests per minute that processes have leased, for installations with several
//! processes.

use sea_orm::entity::prelude::*;

/// One rate limit bucket in one minute.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "rate_window")]
pub struct Model {
    /// The tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Start of the minute, in seconds since the epoch.
    #[sea_orm(primary_key, auto_increment = false)]
    pub starts_at: i64,
    /// The bucket, which groups routes.
    #[sea_orm(primary_key, auto_increment = false)]
    pub bucket: String,
    /// Number of requests leased to processes so far.
    pub taken: i64,
    /// Number of requests in the last lease; returned by the statement that takes it.
    pub granted: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
