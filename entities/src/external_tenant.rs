//! Table `external_tenant`: names of tenants at identity providers. A tenant is looked up by this name
//! before it is known, so the primary key does not begin with the tenant; on a distributed database it
//! is a reference table.

use sea_orm::entity::prelude::*;

/// A tenant's name at an identity provider.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "external_tenant")]
pub struct Model {
    /// The name, unique within the installation.
    #[sea_orm(primary_key, auto_increment = false)]
    pub external_id: String,
    /// The tenant.
    pub tenant_id: Uuid,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
