//! Table `project`: projects of tenants.

use sea_orm::entity::prelude::*;

/// A project of a tenant.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "project")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Identifies the project.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// Unique within the tenant.
    pub name: String,
    /// Whether prompt deployments that passed their test ship without approval.
    pub prompt_autoship_enabled: bool,
    /// Days after which traces are deleted; null keeps all traces.
    pub retention_days: Option<i32>,
    /// Microseconds; null while active.
    pub archived_at: Option<i64>,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds.
    pub updated_at: i64,
    /// Whether ingest created the project. False for projects created by request or before this column
    /// existed.
    pub created_by_ingest: bool,
    /// Redaction settings, as JSON; null if redaction is off.
    pub redaction: Option<String>,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
