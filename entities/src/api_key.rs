//! Table `api_key`: looked up by hash before the tenant is known, so its keys do not begin
//! with the tenant; on a distributed database it is a reference table.

use sea_orm::entity::prelude::*;

/// One API key. The key itself is not stored.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "api_key")]
pub struct Model {
    /// Identifies the key in paths.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The owner.
    pub tenant_id: Uuid,
    /// Where its traces go.
    pub project_id: Uuid,
    /// SHA-256 of the key, 32 bytes, unique.
    pub hash: Vec<u8>,
    /// Descriptive name.
    pub name: String,
    /// The key's first 11 characters.
    pub prefix: String,
    /// Words of [`api::Scope`] joined by commas; empty means full access.
    pub scopes: String,
    /// A word of [`api::Role`]: what its maker could do.
    pub role: String,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds; null never ends.
    pub expires_at: Option<i64>,
    /// Microseconds; null while it works.
    pub revoked_at: Option<i64>,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
