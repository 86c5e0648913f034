//! Table `prompt_replay`: the pairs of replay tests. A pair is a stored model call of the baseline, and the call of the
//! candidate with the same input.

use sea_orm::entity::prelude::*;

/// A pair of a replay test.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "prompt_replay")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The tested deployment.
    #[sea_orm(primary_key, auto_increment = false)]
    pub deployment_id: Uuid,
    /// Unique within the deployment.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The trace of the baseline.
    pub trace_id: Uuid,
    /// The span with the model call.
    pub span_id: Uuid,
    /// `pending`, `running`, `complete` or `failed`.
    pub status: String,
    /// Number of calls to the provider that were begun.
    pub attempts: i32,
    /// Time at which the latest of these calls was begun, microseconds.
    pub called_at: Option<i64>,
    /// The score of the stored output.
    pub baseline_score: Option<f64>,
    /// The score of the candidate's output.
    pub candidate_score: Option<f64>,
    /// Why the pair failed.
    pub error: Option<String>,
    /// Microseconds.
    pub created_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
