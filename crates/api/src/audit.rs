//! The audit log: who did what of consequence, when, and how it ended.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Timestamp, enums::words, trace::RawObject};

words! {
    /// What kind of caller acted.
    ActorKind {
        /// A dashboard session.
        Session = "session",
        /// An API key.
        ApiKey = "api_key",
        /// Commands on the server's machine.
        Operator = "operator",
        /// The service itself, following a setting.
        System = "system",
    }
}

/// Who acted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Actor {
    /// What kind of caller.
    pub kind: ActorKind,
    /// A session's subject, a key's id, or the name of the operator's account.
    pub id: String,
}

/// What was acted on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Target {
    /// `api_key`, `project`, `member`…
    pub kind: String,
    /// Its id, or its name where that identifies it.
    pub id: String,
}

/// One sensitive action.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AuditRecord {
    /// Identifies the record.
    pub id: Uuid,
    /// What was done, such as `api_key.create`.
    pub action: String,
    /// Who did it.
    pub actor: Actor,
    /// What it was done to; null for the tenant itself.
    pub target: Option<Target>,
    /// `ok`, or the code of the error that was answered.
    pub result: String,
    /// The request's id; null for what came without one.
    pub request_id: Option<String>,
    /// What changed, without secrets.
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub detail: Option<RawObject>,
    /// When.
    pub created_at: Timestamp,
}

/// A page of the audit log, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AuditLog {
    /// The records.
    pub audit_log: Vec<AuditRecord>,
    /// More rows exist beyond this page.
    pub has_more: bool,
    /// Opaque position of the next page; null on the last one.
    pub next_cursor: Option<String>,
}
