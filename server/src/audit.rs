//! The audit log: records of sensitive actions.
//!
//! The record of an executed action is part of its transaction; the record of a rejected action is
//! written separately. Records cannot be changed or deleted.

use api::audit::ActorKind;
use entities::audit_record;
use serde_json::Value;
use store::{Connection, DbError, new_id};
use uuid::Uuid;

use crate::access::{Caller, Credential};

/// Rejections of one action by one actor that are recorded per minute: enough to see the attempt, too
/// few to fill the log.
pub const MAX_RECORDED_REJECTIONS: u32 = 10;

/// A kind of audited action. Each is a constant beside the code that performs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AuditAction {
    name: &'static str,
    target: &'static str,
}

impl AuditAction {
    /// Creates a kind of action with its name in the audit log, such as `project.create`, and the kind of its
    /// target.
    pub const fn new(name: &'static str, target: &'static str) -> Self {
        Self { name, target }
    }

    /// Returns the name in the audit log.
    pub const fn as_str(self) -> &'static str {
        self.name
    }
}

/// The actor, and the tenant that the action concerns.
#[derive(Clone, Debug)]
pub struct Actor {
    /// The tenant that the action concerns.
    pub tenant_id: Uuid,
    /// The kind of caller.
    pub kind: ActorKind,
    /// A session's subject, a key's ID, or the operator's account.
    pub id: String,
    /// The request ID.
    pub request_id: Option<String>,
}

impl Actor {
    /// Returns the service itself, which acts without a request.
    pub fn system(tenant_id: Uuid) -> Self {
        Self { tenant_id, kind: ActorKind::System, id: "loupe-server".to_owned(), request_id: None }
    }
}

impl From<&Caller> for Actor {
    fn from(caller: &Caller) -> Self {
        let (kind, id) = match &caller.credential {
            Credential::Key { id, .. } => (ActorKind::ApiKey, id.to_string()),
            Credential::Session { subject, .. } => (ActorKind::Session, subject.to_string()),
        };
        Self { tenant_id: caller.tenant_id, kind, id, request_id: Some(caller.request_id.to_string()) }
    }
}

/// An action, its target and its changes.
#[derive(Clone, Debug)]
pub struct AuditEvent {
    action: AuditAction,
    target: Option<String>,
    detail: Option<Value>,
}

impl AuditEvent {
    /// Creates an event of the tenant itself, unless [`Self::on`] is called.
    pub fn of(action: AuditAction) -> Self {
        Self { action, target: None, detail: None }
    }

    /// Sets the target.
    pub fn on(mut self, id: impl ToString) -> Self {
        self.target = Some(id.to_string());
        self
    }

    /// Sets the changes: an object without secrets.
    pub fn with(mut self, detail: Value) -> Self {
        self.detail = Some(detail);
        self
    }
}

/// Records an action in its transaction.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn record(
    txn: &impl Connection,
    actor: impl Into<Actor>,
    event: AuditEvent,
    now: i64,
) -> Result<(), DbError> {
    store::audit::add(txn, executed_record(actor, event, now)).await
}

/// Returns the record of an executed action, for callers that insert it themselves.
pub fn executed_record(actor: impl Into<Actor>, event: AuditEvent, now: i64) -> audit_record::Model {
    row(actor.into(), event, "ok", now)
}

/// Records a rejected action with its error code.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn record_rejection(
    db: &impl Connection,
    actor: impl Into<Actor>,
    event: AuditEvent,
    code: &str,
    now: i64,
) -> Result<(), DbError> {
    store::audit::add(db, row(actor.into(), event, code, now)).await
}

fn row(actor: Actor, event: AuditEvent, result: &str, now: i64) -> audit_record::Model {
    audit_record::Model {
        tenant_id: actor.tenant_id,
        id: new_id(),
        action: event.action.as_str().to_owned(),
        actor_kind: actor.kind.as_str().to_owned(),
        actor: actor.id,
        target_kind: event.target.is_some().then(|| event.action.target.to_owned()),
        target: event.target,
        result: result.to_owned(),
        request_id: actor.request_id,
        detail: event.detail.map(|it| it.to_string()),
        created_at: now,
    }
}
