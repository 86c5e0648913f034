//! Table `model_price`: prices that a tenant set itself.

use sea_orm::entity::prelude::*;

/// A tenant's own price of one model.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "model_price")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Model name as given.
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    /// An [`api::model::ModelPrice`] as JSON.
    pub price: String,
    /// Microseconds.
    pub updated_at: i64,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
