//! Table `prompt_score`: the scores that tests and watches of prompt deployments have counted, so that a trace counts once.

use sea_orm::entity::prelude::*;

/// A counted score.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "prompt_score")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant, ordered by `created_at`.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The deployment whose test or watch counted the score.
    pub deployment_id: Uuid,
    /// The evaluated trace.
    pub trace_id: Uuid,
    /// The evaluation.
    pub evaluation_id: Uuid,
    /// `baseline` or `candidate` for a score of the test, `watch` for a score of the watch.
    pub counted_as: String,
    /// The score.
    pub score: f64,
    /// Microseconds.
    pub created_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
