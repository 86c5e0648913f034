//! Projects as the server answers them.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Timestamp;

/// Whether a project takes traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum ProjectStatus {
    /// Takes traces.
    Active,
    /// Ingest answers 403; data, keys and history are kept.
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
    /// Prompt deployments that passed their test ship without approval.
    pub prompt_autoship_enabled: bool,
    /// Days after which traces are deleted; null keeps all.
    pub retention_days: Option<i32>,
    /// When it was archived.
    pub archived_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A page of projects, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ProjectList {
    /// The projects.
    pub projects: Vec<Project>,
    /// More rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
