//! Table `failure_rule`: conditions on traces that trigger `failure.detected`.

use sea_orm::entity::prelude::*;

/// A failure rule.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "failure_rule")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The name.
    pub name: String,
    /// Whether the rule fires.
    pub enabled: bool,
    /// The project of the traces; null for all projects.
    pub project_id: Option<Uuid>,
    /// Bit set of [`api::FailureType`]s.
    pub failure_types: i16,
    /// The metric whose low scores fire the rule.
    pub metric_name: Option<String>,
    /// The highest score that fires the rule.
    pub max_score: Option<f64>,
    /// JSON object: [`api::eval_rule::RuleFilter`].
    pub filter: String,
    /// Minimum number of matching traces within the window for the rule to fire.
    pub min_count: i32,
    /// The window in minutes.
    pub window_minutes: i32,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds.
    pub updated_at: i64,
    /// Microseconds; null if the rule never fired.
    pub last_fired_at: Option<i64>,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
