//! Table `held_input`: spans and log records that are kept for a while, so that they can be joined.

use sea_orm::entity::prelude::*;

/// A span, or the log records of one trace in one request.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "held_input")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The trace. It may not be stored yet.
    #[sea_orm(primary_key, auto_increment = false)]
    pub trace_id: Uuid,
    /// The ID of the span, or derived from the log records, so that a repeated request changes nothing.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The project of the request.
    pub project_id: Uuid,
    /// Code of a [`HeldKind`].
    pub kind: i16,
    /// Whether the log records were joined with their spans. False for spans.
    pub joined: bool,
    /// Number of spans or log records.
    pub items: i32,
    /// Memory in bytes of the decoded data.
    pub size: i32,
    /// A Zstandard frame.
    pub data: Vec<u8>,
    /// Microseconds.
    pub received_at: i64,
}

/// The kind of a row's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldKind {
    /// A span that log records may complete.
    Spans,
    /// Log records.
    LogRecords,
}

impl HeldKind {
    /// Returns the stored code.
    pub fn code(self) -> i16 {
        match self {
            Self::Spans => 0,
            Self::LogRecords => 1,
        }
    }
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
