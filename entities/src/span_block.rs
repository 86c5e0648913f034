//! Table `span_block`: the spans of a trace in one row. Spans that are too many or too large are in [`crate::span`].

use sea_orm::entity::prelude::*;

/// The spans of a trace without their texts.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "span_block")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The key of the trace.
    #[sea_orm(primary_key, auto_increment = false)]
    pub trace_key: i64,
    /// The trace.
    pub trace_id: Uuid,
    /// The IDs of the text blocks with the texts of the spans, 16 bytes each.
    pub body_ids: Vec<u8>,
    /// The spans, a protocol buffer.
    pub data: Vec<u8>,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
