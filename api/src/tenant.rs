//! Who is calling, as `GET /v1/me` answers it.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Plan, Role, Timestamp, key::ApiKey};

/// An organisation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Tenant {
    /// Identifies the tenant.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// What it pays for.
    pub plan: Plan,
    /// Its name at an identity provider.
    pub external_id: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Answer to `GET /v1/me`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Me {
    /// The tenant that the credential belongs to.
    pub tenant: Tenant,
    /// What the credential may do: the session's role, or the role of the key's maker.
    pub role: Role,
    /// The session's subject; null for a key.
    pub subject: Option<String>,
    /// The key in use; null for a session.
    pub api_key: Option<ApiKey>,
    /// When the session ends; null for a key.
    pub expires_at: Option<Timestamp>,
}
