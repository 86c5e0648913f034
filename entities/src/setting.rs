//! Table `setting`: settings of this installation. Belongs to no tenant.

use sea_orm::entity::prelude::*;

/// A named setting.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "setting")]
pub struct Model {
    /// The name.
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    /// The value.
    pub value: String,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
