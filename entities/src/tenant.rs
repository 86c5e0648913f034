//! Table `tenant`: one row an organisation.

use sea_orm::entity::prelude::*;

/// One organisation.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "tenant")]
pub struct Model {
    /// Identifies the tenant; the first column of every key of what it owns.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Its name.
    pub name: String,
    /// Its name at an identity provider.
    pub external_id: Option<String>,
    /// A word of [`api::Plan`].
    pub plan: String,
    /// Microseconds.
    pub created_at: i64,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
