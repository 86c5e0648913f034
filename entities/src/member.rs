//! Table `member`: whoever came with a session of the tenant, and the seat that this takes.

use sea_orm::entity::prelude::*;

/// One member of a tenant.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "member")]
pub struct Model {
    /// The tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Identifies the member in paths.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The token's `sub`; unique within the tenant.
    pub subject: String,
    /// A word of [`api::Role`]: what the newest token said.
    pub role: String,
    /// A word of [`api::member::MemberStatus`]. The row of a removed member stays, so that the
    /// subject stays out.
    pub status: String,
    /// Microseconds.
    pub created_at: i64,
    /// When a token of this subject was last seen, within an hour; microseconds.
    pub last_seen_at: i64,
    /// Microseconds.
    pub updated_at: i64,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
