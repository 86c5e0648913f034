//! Table `failure_cluster`: failures of the same type and cause, counted together.

use sea_orm::entity::prelude::*;

/// A failure cluster.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "failure_cluster")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Ordered by creation.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The project of its failures.
    pub project_id: Uuid,
    /// Bit of [`api::FailureType`].
    pub failure_type: i16,
    /// The span name with its variable parts masked.
    pub span_name: String,
    /// Version of the template's rules, a colon, and the failure template.
    pub fingerprint: String,
    /// The first sentence of the template.
    pub title: String,
    /// A word of [`api::failure::ClusterStatus`].
    pub status: String,
    /// Number of failures that joined it.
    pub count: i64,
    /// Number of traces with such failures.
    pub trace_count: i64,
    /// Time of the first failure, microseconds.
    pub first_seen: i64,
    /// Time of the newest failure, microseconds.
    pub last_seen: i64,
    /// JSON list of pairs: the trace and the failure of each sample.
    pub samples: String,
    /// JSON list of the models of its failures.
    pub models: String,
    /// Time at which it was resolved, microseconds; null unless it is resolved.
    pub resolved_at: Option<i64>,
    /// Microseconds.
    pub updated_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
