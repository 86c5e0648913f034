//! Table `metric_delta`: deltas that are not yet folded into the roll-up tree.

use sea_orm::entity::prelude::*;

/// The delta of one commit.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "metric_delta")]
pub struct Model {
    /// The tenant whose traces changed.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// A new ID for each delta.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The changes, in the encoding of the server's metrics.
    pub data: Vec<u8>,
    /// Number of changes.
    pub changes: i32,
    /// Microseconds.
    pub created_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
