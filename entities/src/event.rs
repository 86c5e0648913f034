//! Table `event`: events of traces.

use sea_orm::entity::prelude::*;

/// An event of a trace.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "event")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The trace that it belongs to.
    #[sea_orm(primary_key, auto_increment = false)]
    pub trace_id: Uuid,
    /// Unique within the trace.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The span that it belongs to.
    pub span_id: Option<Uuid>,
    /// The message.
    pub message: String,
    /// `debug`, `info`, `warning`, `error`, or another word.
    pub level: String,
    /// JSON object; null if empty.
    pub metadata: Option<String>,
    /// Microseconds.
    pub created_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
