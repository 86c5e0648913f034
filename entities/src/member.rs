//! Table `member`: users of a tenant and their seats.

use sea_orm::entity::prelude::*;

/// A member of a tenant.
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
    /// A word of [`api::Role`]: the role in the newest token.
    pub role: String,
    /// A word of [`api::member::MemberStatus`]. The row of a removed member remains, so that the user
    /// stays excluded.
    pub status: String,
    /// Microseconds.
    pub created_at: i64,
    /// Time of the last request, to the hour; microseconds.
    pub last_seen_at: i64,
    /// Microseconds.
    pub updated_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
