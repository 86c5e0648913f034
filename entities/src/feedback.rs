//! Table `feedback`: what end users and reviewers said of traces.

use sea_orm::entity::prelude::*;

/// One feedback.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "feedback")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The trace it is about.
    #[sea_orm(primary_key, auto_increment = false)]
    pub trace_id: Uuid,
    /// Its id.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The trace's project.
    pub project_id: Uuid,
    /// The span that is meant; null for the whole trace.
    pub span_id: Option<Uuid>,
    /// A word of [`api::feedback::FeedbackLabel`].
    pub label: String,
    /// In words.
    pub comment: Option<String>,
    /// Who said so. With one there is one row a trace, user and source.
    pub user_id: Option<String>,
    /// Where it was said; empty when that is not known.
    pub source: String,
    /// JSON object.
    pub metadata: Option<String>,
    /// Microseconds.
    pub created_at: i64,
    /// When it was last said, microseconds.
    pub updated_at: i64,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
