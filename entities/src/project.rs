//! Table `project`: where traces of a tenant are kept apart.

use sea_orm::entity::prelude::*;

/// One project of a tenant.
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
    /// Passed prompt deployments ship by themselves.
    pub prompt_autoship_enabled: bool,
    /// Days after which traces go; null keeps all.
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
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
