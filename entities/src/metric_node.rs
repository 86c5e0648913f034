//! Table `metric_node`: the traces of a project that started within a stretch of time, summed up.
//!
//! Nodes form a tree by time. One with few traces holds them one by one and is a leaf; one
//! with many holds their sums, and nodes of the next level share them.

use sea_orm::entity::prelude::*;

/// One stretch of time of one project.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "metric_node")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The project of the traces.
    #[sea_orm(primary_key, auto_increment = false)]
    pub project_id: Uuid,
    /// How long the stretch is; 0 is the longest.
    #[sea_orm(primary_key, auto_increment = false)]
    pub level: i16,
    /// When it begins, microseconds.
    #[sea_orm(primary_key, auto_increment = false)]
    pub start: i64,
    /// There are no nodes below it.
    pub leaf: bool,
    /// The traces or their sums, as the server's metrics write them.
    pub data: Vec<u8>,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
