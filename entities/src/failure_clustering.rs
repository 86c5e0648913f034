//! Table `failure_clustering`: the lock under which failures of a project join clusters.

use sea_orm::entity::prelude::*;

/// The clustering of a project.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "failure_clustering")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The project.
    #[sea_orm(primary_key, auto_increment = false)]
    pub project_id: Uuid,
    /// Incremented with every change of templates, so that processes discard their copies.
    pub version: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
