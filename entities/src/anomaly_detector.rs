//! Table `anomaly_detector`: the detectors of a project between two intervals.

use sea_orm::entity::prelude::*;

/// The detectors of all metrics of a project, and the next interval that they process.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "anomaly_detector")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The project.
    #[sea_orm(primary_key, auto_increment = false)]
    pub project_id: Uuid,
    /// Length of the intervals, microseconds.
    pub interval_micros: i64,
    /// Start of the next interval, microseconds. Together with the length, also the fencing token: only the
    /// process that read it can store the next state.
    pub next_start: i64,
    /// End of the next interval, microseconds.
    pub due_at: i64,
    /// Start of the first interval whose anomalies are stored; the detectors only learn from earlier ones.
    pub live_from: i64,
    /// The state of the detectors, in the encoding of the server; empty before the first interval.
    pub state: Vec<u8>,
    /// Microseconds.
    pub updated_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
