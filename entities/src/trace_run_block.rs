//! Table `trace_run_block`: the sorted entries of the runs of the trace index.

use sea_orm::entity::prelude::*;

/// A block of a run.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "trace_run_block")]
pub struct Model {
    /// The owner of the traces.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The run.
    #[sea_orm(primary_key, auto_increment = false)]
    pub run_id: i64,
    /// Position in the order of the run's blocks, from 0.
    #[sea_orm(primary_key, auto_increment = false)]
    pub number: i32,
    /// The entries, in the store's encoding.
    pub data: Vec<u8>,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
