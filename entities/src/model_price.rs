//! Table `model_price`: prices set by tenants.

use sea_orm::entity::prelude::*;

/// A tenant's price of a model.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "model_price")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Model name as sent by the tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    /// An [`api::model::ModelPrice`] as JSON.
    pub price: String,
    /// Microseconds.
    pub updated_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
