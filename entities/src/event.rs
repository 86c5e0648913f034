//! Table `event`: what was noted during a trace.

use sea_orm::entity::prelude::*;

/// One event of a trace.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "event")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The trace it is part of.
    #[sea_orm(primary_key, auto_increment = false)]
    pub trace_id: Uuid,
    /// Unique within the trace.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The span during which it happened.
    pub span_id: Option<Uuid>,
    /// What happened.
    pub message: String,
    /// `debug`, `info`, `warning`, `error`, or as given.
    pub level: String,
    /// JSON object; null without.
    pub metadata: Option<String>,
    /// Microseconds.
    pub created_at: i64,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
