//! Table `trace_tail`: the traces that no run of the trace index has in their present state.

use sea_orm::entity::prelude::*;

/// A range of keys of traces.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "trace_tail")]
pub struct Model {
    /// The owner of the traces.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// A new key for each row.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    /// The lowest key of the range.
    pub first_key: i64,
    /// The highest key of the range.
    pub last_key: i64,
    /// Number of traces that the commit added or changed; other processes may have traces in the range too.
    pub traces: i32,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
