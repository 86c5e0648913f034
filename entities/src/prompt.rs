//! Table `prompt`: the prompts of a project. The row of a prompt is the lock of its deployments.

use sea_orm::entity::prelude::*;

/// A prompt.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "prompt")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The project.
    #[sea_orm(primary_key, auto_increment = false)]
    pub project_id: Uuid,
    /// Unique within the project.
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    /// The newest version; 0 before the first.
    pub last_version: i32,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
