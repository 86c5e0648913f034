//! Table `metric_delta`: what commits changed of the metrics and no node holds yet.

use sea_orm::entity::prelude::*;

/// What one commit changed.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "metric_delta")]
pub struct Model {
    /// The tenant whose traces changed.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Made anew for each.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The changes, as the server's metrics write them.
    pub data: Vec<u8>,
    /// How many changes these are.
    pub changes: i32,
    /// Microseconds.
    pub created_at: i64,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
