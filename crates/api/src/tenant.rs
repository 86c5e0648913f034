//! The caller's tenant, role and limits, as returned by `GET /v1/me`.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Plan, Role, Timestamp, key::ApiKey};

/// An organization.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Tenant {
    /// Identifies the tenant.
    pub id: Uuid,
    /// The name.
    pub name: String,
    /// The plan.
    pub plan: Plan,
    /// The tenant's name at the identity provider.
    pub external_id: Option<String>,
    /// Creation time.
    pub created_at: Timestamp,
}

/// Rate limits of a plan: requests per minute of all callers of the tenant together. Null means no
/// limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RequestLimits {
    /// `GET /v1/traces`.
    pub traces: Option<u64>,
    /// `GET /v1/metrics`.
    pub metrics: Option<u64>,
    /// `POST /v1/feedback`.
    pub feedback: Option<u64>,
    /// `POST /v1/eval`.
    pub eval: Option<u64>,
    /// `GET /v1/prompts/{name}`.
    pub prompts: Option<u64>,
    /// The ingest endpoints together.
    pub ingest: Option<u64>,
    /// Everything else together.
    pub other: Option<u64>,
}

/// Limits of a plan. Null means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Limits {
    /// Rate limits.
    pub requests_per_minute: RequestLimits,
    /// Traces stored per calendar month (UTC).
    pub traces_per_month: Option<u64>,
    /// LLM evaluations per calendar month (UTC).
    pub llm_evaluations_per_month: Option<u64>,
    /// Members with a seat.
    pub members: Option<u64>,
}

/// Current usage of the limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Usage {
    /// The calendar month (UTC) of the counts, such as `2026-11`.
    pub month: String,
    /// Traces stored.
    pub traces: i64,
    /// LLM evaluations.
    pub llm_evaluations: i64,
    /// Members with a seat, now.
    pub members: i64,
}

/// Response of `GET /v1/me`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Me {
    /// The tenant of the credential.
    pub tenant: Tenant,
    /// The role of the session, or the role of the user who created the key.
    pub role: Role,
    /// The session's subject; null for an API key.
    pub subject: Option<String>,
    /// The API key; null for a session.
    pub api_key: Option<ApiKey>,
    /// Expiry time of the session; null for an API key.
    pub expires_at: Option<Timestamp>,
    /// Limits of the plan.
    pub limits: Limits,
    /// Current usage.
    pub usage: Usage,
}
