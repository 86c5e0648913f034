//! The audit log: which actor did what, when, and with which result.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Timestamp, enums::words, trace::RawObject};

words! {
    /// Kind of the actor.
    ActorKind {
        /// A dashboard session.
        Session = "session",
        /// An API key.
        ApiKey = "api_key",
        /// A command of the operator on the server's machine.
        Operator = "operator",
        /// The service itself, for example when a retention period ends.
        System = "system",
    }
}

/// The user, API key or command that performed an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Actor {
    /// Kind of the actor.
    pub kind: ActorKind,
    /// The session's subject, the key's ID, or the operator's account name.
    pub id: String,
}

/// The resource that an action changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Target {
    /// Kind of the resource, such as `api_key`, `project` or `member`.
    pub kind: String,
    /// ID of the resource, or its name if the name identifies it.
    pub id: String,
}

/// A record of one audited action.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AuditRecord {
    /// Identifies the record.
    pub id: Uuid,
    /// The action, such as `api_key.create`.
    pub action: String,
    /// The actor.
    pub actor: Actor,
    /// The resource; null for the tenant itself.
    pub target: Option<Target>,
    /// `ok`, or the error code of the response.
    pub result: String,
    /// ID of the request; null for actions without a request.
    pub request_id: Option<String>,
    /// The changes, without secrets.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub detail: Option<RawObject>,
    /// Time of the action.
    pub created_at: Timestamp,
}

/// A page of the audit log, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AuditLog {
    /// The records.
    pub audit_log: Vec<AuditRecord>,
    /// Whether more rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
