//! API keys.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Scope, Timestamp};

/// An API key. Only the response that creates it contains the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ApiKey {
    /// Identifies the key in paths.
    pub id: Uuid,
    /// Descriptive name.
    pub name: String,
    /// The first characters of the key.
    pub prefix: String,
    /// Restrictions; empty means full access.
    pub scopes: Vec<Scope>,
    /// The project that receives the traces sent with this key.
    pub project_id: Uuid,
    /// Creation time.
    pub created_at: Timestamp,
    /// Expiry time; null if the key does not expire.
    pub expires_at: Option<Timestamp>,
    /// The full key; only in the response that creates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// Body of `POST /v1/apikeys`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewApiKey {
    /// Descriptive name, 1 to 200 characters.
    pub name: String,
    /// `query`, or empty for full access.
    #[serde(default)]
    pub scopes: Option<Vec<String>>,
    /// Default: the tenant's oldest active project.
    #[serde(default)]
    pub project_id: Option<Uuid>,
    /// Expiry time; default: none.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}

/// A page of API keys, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ApiKeyList {
    /// The keys that are not revoked.
    pub apikeys: Vec<ApiKey>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
