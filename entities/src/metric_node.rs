//! Table `metric_node`: the roll-up tree of a project's metrics.
//!
//! Nodes form a tree by time. A node with few traces lists them and is a leaf; a node with many
//! contains their totals, and nodes of the next level divide them.

use sea_orm::entity::prelude::*;

/// The totals of one period of a project.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "metric_node")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The project of the traces.
    #[sea_orm(primary_key, auto_increment = false)]
    pub project_id: Uuid,
    /// Length of the period; 0 is the longest.
    #[sea_orm(primary_key, auto_increment = false)]
    pub level: i16,
    /// Start of the period, microseconds.
    #[sea_orm(primary_key, auto_increment = false)]
    pub start: i64,
    /// Whether the node has no child nodes.
    pub leaf: bool,
    /// The traces or their totals, in the encoding of the server's metrics.
    pub data: Vec<u8>,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
