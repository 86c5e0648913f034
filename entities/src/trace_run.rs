//! Table `trace_run`: the runs of the trace index. Their blocks are in [`crate::trace_run_block`].

use sea_orm::entity::prelude::*;

/// A run.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "trace_run")]
pub struct Model {
    /// The owner of the traces.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    /// 0 for a run that was made from the tail, else one more than the highest level of the merged runs.
    pub level: i16,
    /// 0 while its blocks are written, 1 when lists read it, 2 when another run replaced it.
    pub state: i16,
    /// Number of traces; a trace that changed may be counted several times.
    pub traces: i64,
    /// Start of the newest trace, microseconds.
    pub newest_at: i64,
    /// Start of the oldest trace, microseconds.
    pub oldest_at: i64,
    /// Number of blocks.
    pub blocks: i32,
    /// End of the lease of the process that merges it, microseconds.
    pub merged_until: i64,
    /// Time of the last change of its state, microseconds.
    pub changed_at: i64,
    /// The first entry of each block, encoded like a block.
    pub directory: Vec<u8>,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
