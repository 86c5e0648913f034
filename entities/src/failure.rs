//! Table `failure`: one row per failing span, and per remediation regression.

use sea_orm::entity::prelude::*;

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "failure")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Ordered by `created_at`.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The project of the trace.
    pub project_id: Uuid,
    /// The trace.
    pub trace_id: Uuid,
    /// The span; the nil UUID for an error of the trace itself.
    pub span_id: Uuid,
    /// Bit of [`api::FailureType`].
    pub failure_type: i16,
    /// The evaluation that found a remediation regression; the nil UUID for failing spans.
    pub source_id: Uuid,
    /// The beginning of the error message.
    pub message: String,
    /// The model of the span.
    pub model: Option<String>,
    /// The name of the span.
    pub span_name: String,
    /// The cluster that the failure joined.
    pub cluster_id: Uuid,
    /// Time at which the failing span was stored, microseconds.
    pub created_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
