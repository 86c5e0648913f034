//! Table `quota_use`: usage of the monthly quotas.

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
    /// The counted resource: `traces` or `llm_evaluations`.
    #[sea_orm(primary_key, auto_increment = false)]
    pub quota: String,
    /// Shard number: writers update different rows to avoid lock contention; a quota with a limit has
    /// only shard 0.
    #[sea_orm(primary_key, auto_increment = false)]
    pub slot: i16,
    /// The amount used.
    pub used: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
