//! Projects.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Timestamp;

/// Whether a project accepts traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum ProjectStatus {
    /// Accepts traces.
    Active,
    /// Rejects ingest with 403; data, keys and history are kept.
    Archived,
}

/// A project of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Project {
    /// Identifies the project.
    pub id: Uuid,
    /// Unique within the tenant.
    pub name: String,
    /// Active or archived.
    pub status: ProjectStatus,
    /// Whether prompt deployments that passed their test ship without approval.
    pub prompt_autoship_enabled: bool,
    /// Days after which traces are deleted; null keeps all traces.
    pub retention_days: Option<i32>,
    /// Time of archiving.
    pub archived_at: Option<Timestamp>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// Body of `POST /v1/projects`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewProject {
    /// Unique within the tenant, 1 to 500 characters.
    pub name: String,
    /// Default: false.
    #[serde(default)]
    pub prompt_autoship_enabled: Option<bool>,
    /// 1 to 3650 days after which traces are deleted; default: never.
    #[serde(default)]
    pub retention_days: Option<i64>,
}

/// Body of `PATCH /v1/projects/{id}`. Absent fields keep their values.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ProjectChange {
    /// Unique within the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether prompt deployments that passed their test ship without approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_autoship_enabled: Option<bool>,
    /// 1 to 3650 days after which traces are deleted; null keeps all traces.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::object::given")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<i64>))]
    pub retention_days: Option<Option<i64>>,
}

/// Detectors and patterns whose values ingest masks before it stores the texts of a project. If both lists are empty,
/// redaction is off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RedactionSettings {
    /// Detectors of personal data and secrets: `email`, `phone`, `payment_card`, `iban`, `national_id`, `ip_address`,
    /// `secret`, or `all`.
    pub detectors: Vec<String>,
    /// Up to 20 patterns of the project.
    #[serde(default)]
    pub patterns: Vec<RedactionPattern>,
}

/// A regular expression whose matches ingest masks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RedactionPattern {
    /// The name in the placeholder: up to 32 lower-case letters, digits and underscores.
    pub name: String,
    /// The expression, up to 500 bytes; every match has at least 3 bytes.
    pub pattern: String,
}

impl RedactionSettings {
    /// Returns whether nothing is masked.
    pub fn is_off(&self) -> bool {
        self.detectors.is_empty() && self.patterns.is_empty()
    }
}

/// A page of projects, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ProjectList {
    /// The projects.
    pub projects: Vec<Project>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
