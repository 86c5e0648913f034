//! Table `api_key`. A key is looked up by its hash before the tenant is known, so the primary key does
//! not begin with the tenant; on a distributed database it is a reference table.

use sea_orm::entity::prelude::*;

/// An API key. The secret itself is not stored.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "api_key")]
pub struct Model {
    /// Identifies the key in paths.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The owner.
    pub tenant_id: Uuid,
    /// The project that receives the traces sent with this key.
    pub project_id: Uuid,
    /// SHA-256 of the key, 32 bytes, unique.
    pub hash: Vec<u8>,
    /// Descriptive name.
    pub name: String,
    /// The key's first 11 characters.
    pub prefix: String,
    /// Words of [`api::Scope`] joined by commas; empty means full access.
    pub scopes: String,
    /// A word of [`api::Role`]: the role of the user who created the key.
    pub role: String,
    /// Microseconds.
    pub created_at: i64,
    /// Expiry time in microseconds; null if it never expires.
    pub expires_at: Option<i64>,
    /// Time of revocation in microseconds; null while the key is valid.
    pub revoked_at: Option<i64>,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
