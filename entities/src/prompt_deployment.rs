//! Table `prompt_deployment`: the versions of prompts, by time.

use sea_orm::entity::prelude::*;

/// A version of a prompt, with its test and its watch.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "prompt_deployment")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant, ordered by `created_at`.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The project.
    pub project_id: Uuid,
    /// The prompt.
    pub prompt_name: String,
    /// Unique within the prompt, from 1.
    pub version: i32,
    /// The text of the prompt.
    pub template: String,
    /// The model that the application should use.
    pub model: Option<String>,
    /// A word of [`api::deployment::DeploymentStatus`].
    pub status: String,
    /// Why the test failed, or which scores regressed.
    pub reason: Option<String>,
    /// The deployment that was shipped when this one was created.
    pub baseline_id: Option<Uuid>,
    /// The deployment that was superseded when this one was shipped.
    pub replaced_id: Option<Uuid>,
    /// A word of [`api::deployment::TestMode`].
    pub mode: String,
    /// JSON object with the settings of the test; null without a baseline.
    pub test: Option<String>,
    /// JSON object with the sums of the scores of each arm; null without a baseline.
    pub scores: Option<String>,
    /// JSON object with the figures of the decided test; null before the decision.
    pub result: Option<String>,
    /// JSON object with the watch after shipping; null before the first score.
    pub watch: Option<String>,
    /// The control action whose prompt this version has.
    pub source_action_id: Option<Uuid>,
    /// The subject of the session that created it.
    pub created_by: Option<String>,
    /// The subject of the session that took the last decision, or `autoship`.
    pub decided_by: Option<String>,
    /// Time of that decision, microseconds.
    pub decided_at: Option<i64>,
    /// The note of that decision.
    pub decision_note: Option<String>,
    /// Time at which it was last shipped or restored, microseconds.
    pub shipped_at: Option<i64>,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds.
    pub updated_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
