//! Table `anomaly`: periods in which a metric of a project differed from its usual values.

use sea_orm::entity::prelude::*;

/// An anomaly. Project, metric and `window_start` identify it within the tenant.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "anomaly")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The project.
    pub project_id: Uuid,
    /// Name of the metric, such as `error_rate` or `score:faithfulness`.
    pub metric: String,
    /// A word of [`api::anomaly::AnomalyDirection`].
    pub direction: String,
    /// A word of [`api::anomaly::AnomalySeverity`].
    pub severity: String,
    /// A word of [`api::anomaly::AnomalyStatus`].
    pub status: String,
    /// A word of [`api::anomaly::AnomalyCloseReason`]; null while it is open.
    pub close_reason: Option<String>,
    /// Value with the highest score, in the unit of the metric.
    pub observed: f64,
    /// Expected value at that time.
    pub expected: f64,
    /// Lower end of the expected range.
    pub expected_low: f64,
    /// Upper end of the expected range.
    pub expected_high: f64,
    /// The deviation as a multiple of the usual spread.
    pub score: f64,
    /// Start of the first anomalous interval, microseconds.
    pub window_start: i64,
    /// End of the last anomalous interval, microseconds.
    pub window_end: i64,
    /// Time at which it was detected, microseconds.
    pub created_at: i64,
    /// Microseconds.
    pub updated_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
