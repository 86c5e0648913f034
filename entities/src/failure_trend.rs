//! Table `failure_trend`: the number of failures of a cluster per hour.

use sea_orm::entity::prelude::*;

/// The failures of an hour.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "failure_trend")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The cluster.
    #[sea_orm(primary_key, auto_increment = false)]
    pub cluster_id: Uuid,
    /// Start of the hour, microseconds.
    #[sea_orm(primary_key, auto_increment = false)]
    pub hour: i64,
    /// Number of failures.
    pub count: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
