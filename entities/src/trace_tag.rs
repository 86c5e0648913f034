//! Table `trace_tag`: one row a tag, so that a list by tag reads only its own rows.

use sea_orm::entity::prelude::*;

/// One tag of one trace.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "trace_tag")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The tag's key.
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: String,
    /// The tag's value; empty for a tag that is only a word.
    #[sea_orm(primary_key, auto_increment = false)]
    pub value: String,
    /// The trace's start, microseconds.
    #[sea_orm(primary_key, auto_increment = false)]
    pub started_at: i64,
    /// The trace.
    #[sea_orm(primary_key, auto_increment = false)]
    pub trace_id: Uuid,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
