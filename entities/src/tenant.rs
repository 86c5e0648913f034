//! Table `tenant`: one row per organization.

use sea_orm::entity::prelude::*;

/// An organization.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "tenant")]
pub struct Model {
    /// Identifies the tenant; the first column of the primary key of every table that it owns.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The name.
    pub name: String,
    /// The tenant's name at the identity provider.
    pub external_id: Option<String>,
    /// A word of [`api::Plan`].
    pub plan: String,
    /// Microseconds.
    pub created_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
