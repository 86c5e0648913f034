//! Table `external_tenant`: names of tenants at identity providers. Looked up before the tenant
//! is known, so its key does not begin with the tenant; on a distributed database it is a
//! reference table.

use sea_orm::entity::prelude::*;

/// One tenant's name elsewhere.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "external_tenant")]
pub struct Model {
    /// The name, unique in the installation.
    #[sea_orm(primary_key, auto_increment = false)]
    pub external_id: String,
    /// The tenant.
    pub tenant_id: Uuid,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
