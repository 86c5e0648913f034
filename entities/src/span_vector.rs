//! Table `span_vector`: what spans mean, as vectors, with the columns that a search filters by.
//!
//! The vector itself, column `vector`, has a type of each database's own; the server's store
//! writes and reads it. Kind and model are there as hashes, so that an entry of the index that
//! holds them has a bounded size.

use sea_orm::entity::prelude::*;

/// The vector of a span, without its numbers.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "span_vector")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The span's trace.
    #[sea_orm(primary_key, auto_increment = false)]
    pub trace_id: Uuid,
    /// The span.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The trace's project.
    pub project_id: Uuid,
    /// When the span began, microseconds.
    pub started_at: i64,
    /// Hash of the span's kind.
    pub kind_hash: i64,
    /// Hash of the span's model.
    pub model_hash: Option<i64>,
    /// The model that made the vector; empty when it came with the span.
    pub embedding_model: String,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
