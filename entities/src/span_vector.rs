//! Table `span_vector`: embeddings of spans, with the columns that a search filters by.
//!
//! The column `vector` has a database-specific type, which the server's store writes and reads. Span
//! type and model are stored as hashes, so that index entries that contain them have a bounded size.

use sea_orm::entity::prelude::*;

/// The embedding of a span, without its numbers.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "span_vector")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The key of the span's trace, which increases with arrival, so that vectors are stored in the order of arrival.
    #[sea_orm(primary_key, auto_increment = false)]
    pub trace_key: i64,
    /// The span's trace.
    pub trace_id: Uuid,
    /// The span.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The trace's project.
    pub project_id: Uuid,
    /// Start of the span, microseconds.
    pub started_at: i64,
    /// Hash of the span type.
    pub kind_hash: i64,
    /// Hash of the span's model.
    pub model_hash: Option<i64>,
    /// The embedding model; empty when the vector was sent with the span.
    pub embedding_model: String,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
