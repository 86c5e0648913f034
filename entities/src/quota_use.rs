//! Table `quota_use`: what a tenant used of its monthly quotas.

use sea_orm::entity::prelude::*;

/// The use of one quota in one month.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "quota_use")]
pub struct Model {
    /// The tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// A calendar month in UTC: year * 100 + month.
    #[sea_orm(primary_key, auto_increment = false)]
    pub month: i32,
    /// What is counted: `traces` or `llm_evaluations`.
    #[sea_orm(primary_key, auto_increment = false)]
    pub quota: String,
    /// Rows of writers that need not wait for one another; a quota with a limit has only 0.
    #[sea_orm(primary_key, auto_increment = false)]
    pub slot: i16,
    /// How much.
    pub used: i64,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
