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

/// How many requests a minute a plan allows, all callers of the tenant together. Null is no limit.
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

/// What a plan allows. Null is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Limits {
    /// Requests a minute.
    pub requests_per_minute: RequestLimits,
    /// Traces that may be stored in a calendar month (UTC).
    pub traces_per_month: Option<u64>,
    /// Evaluations by judges in a calendar month (UTC).
    pub llm_evaluations_per_month: Option<u64>,
    /// Members with a seat.
    pub members: Option<u64>,
}

/// What was used of the limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Usage {
    /// The calendar month (UTC) that the numbers are of, such as `2026-11`.
    pub month: String,
    /// Traces stored.
    pub traces: i64,
    /// Evaluations by judges.
    pub llm_evaluations: i64,
    /// Members with a seat, now.
    pub members: i64,
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
    /// What the plan allows.
    pub limits: Limits,
    /// What was used of it.
    pub usage: Usage,
}
