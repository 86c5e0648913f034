//! Table `trace_tag`: one row per tag, so that a list filtered by tag reads only matching rows.

use sea_orm::entity::prelude::*;

/// A tag of a trace.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "trace_tag")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The tag's key.
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: String,
    /// The tag's value; empty for a tag without value.
    #[sea_orm(primary_key, auto_increment = false)]
    pub value: String,
    /// The trace's start, microseconds.
    #[sea_orm(primary_key, auto_increment = false)]
    pub started_at: i64,
    /// The trace.
    #[sea_orm(primary_key, auto_increment = false)]
    pub trace_id: Uuid,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
