//! Table `feedback`: feedback of end users and reviewers on traces.

use sea_orm::entity::prelude::*;

/// One feedback.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "feedback")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The trace that it concerns.
    #[sea_orm(primary_key, auto_increment = false)]
    pub trace_id: Uuid,
    /// Identifies the feedback.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The trace's project.
    pub project_id: Uuid,
    /// The span that it concerns; null for the whole trace.
    pub span_id: Option<Uuid>,
    /// A word of [`api::feedback::FeedbackLabel`].
    pub label: String,
    /// The comment.
    pub comment: Option<String>,
    /// The end user who gave the feedback. If set, there is one row per trace, user and source.
    pub user_id: Option<String>,
    /// The place where the feedback was given; empty if unknown.
    pub source: String,
    /// JSON object.
    pub metadata: Option<String>,
    /// Microseconds.
    pub created_at: i64,
    /// Time at which the feedback was last given, microseconds.
    pub updated_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
