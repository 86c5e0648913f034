//! What is written down of who did what of consequence.
//!
//! A record of what was done is part of the transaction that did it; one of what was refused
//! stands alone. There is no way to change or to delete one.

use api::audit::ActorKind;
use entities::audit_record;
use serde_json::Value;
use store::{Connection, DbError, new_id};
use uuid::Uuid;

use crate::access::{Caller, Credential};

/// Refusals of one action to one actor that are written down in a minute: enough to see that it
/// was tried, too few to fill the log.
pub const REFUSALS: u32 = 10;

/// What is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// An API key was made.
    KeyCreate,
    /// An API key was revoked.
    KeyRevoke,
    /// A member took a seat.
    MemberJoin,
    /// A member came with another role.
    MemberRole,
    /// A member was removed.
    MemberRemove,
    /// A removed member was let in again.
    MemberRestore,
    /// A model's price was set.
    PriceSet,
    /// A project was made.
    ProjectCreate,
    /// A project's settings were changed.
    ProjectUpdate,
    /// A project was archived.
    ProjectArchive,
    /// A project was unarchived.
    ProjectUnarchive,
    /// The database was copied by `admin backup`.
    DatabaseBackup,
    /// A provider's credential was stored.
    CredentialSet,
    /// A provider's credential was deleted.
    CredentialDelete,
    /// Secrets were sealed with another key.
    SecretsReseal,
    /// A tenant was made.
    TenantCreate,
    /// A tenant's plan was changed.
    TenantPlan,
    /// A session token was signed on the server's machine.
    TokenIssue,
    /// A trace was deleted.
    TraceDelete,
}

impl Action {
    /// The word in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KeyCreate => "api_key.create",
            Self::KeyRevoke => "api_key.revoke",
            Self::MemberJoin => "member.join",
            Self::MemberRole => "member.role",
            Self::MemberRemove => "member.remove",
            Self::MemberRestore => "member.restore",
            Self::PriceSet => "model_price.set",
            Self::ProjectCreate => "project.create",
            Self::ProjectUpdate => "project.update",
            Self::ProjectArchive => "project.archive",
            Self::ProjectUnarchive => "project.unarchive",
            Self::DatabaseBackup => "database.backup",
            Self::CredentialSet => "provider_credential.set",
            Self::CredentialDelete => "provider_credential.delete",
            Self::SecretsReseal => "secrets.reseal",
            Self::TenantCreate => "tenant.create",
            Self::TenantPlan => "tenant.plan",
            Self::TokenIssue => "token.issue",
            Self::TraceDelete => "trace.delete",
        }
    }

    /// What it is done to, where that has an id.
    pub const fn target(self) -> &'static str {
        match self {
            Self::KeyCreate | Self::KeyRevoke => "api_key",
            Self::MemberJoin | Self::MemberRole | Self::MemberRemove | Self::MemberRestore => "member",
            Self::PriceSet => "model",
            Self::ProjectCreate | Self::ProjectUpdate | Self::ProjectArchive | Self::ProjectUnarchive => {
                "project"
            }
            Self::CredentialSet | Self::CredentialDelete | Self::SecretsReseal => "provider_credential",
            Self::DatabaseBackup => "database",
            Self::TenantCreate | Self::TenantPlan | Self::TokenIssue => "tenant",
            Self::TraceDelete => "trace",
        }
    }
}

/// Who acted, and on whose tenant.
#[derive(Clone, Debug)]
pub struct Actor {
    /// The tenant acted on.
    pub tenant_id: Uuid,
    /// What kind of caller.
    pub kind: ActorKind,
    /// A session's subject, a key's id, or the operator's account.
    pub id: String,
    /// The request's id.
    pub request_id: Option<String>,
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

/// What was done, to what, and what it changed.
#[derive(Clone, Debug)]
pub struct Event {
    action: Action,
    target: Option<String>,
    detail: Option<Value>,
}

impl Event {
    /// Done to the tenant itself until [`Self::on`] says otherwise.
    pub fn of(action: Action) -> Self {
        Self { action, target: None, detail: None }
    }

    /// Done to this.
    pub fn on(mut self, id: impl ToString) -> Self {
        self.target = Some(id.to_string());
        self
    }

    /// What changed: an object without secrets.
    pub fn with(mut self, detail: Value) -> Self {
        self.detail = Some(detail);
        self
    }
}

/// Writes down what the transaction does.
///
/// # Errors
/// When the database fails.
pub async fn record(
    txn: &impl Connection,
    actor: impl Into<Actor>,
    event: Event,
    now: i64,
) -> Result<(), DbError> {
    store::audit::add(txn, done(actor, event, now)).await
}

/// The record of what was done, for whoever writes it down in a transaction of the store.
pub fn done(actor: impl Into<Actor>, event: Event, now: i64) -> audit_record::Model {
    row(actor.into(), event, "ok", now)
}

/// Writes down what was refused, with the code of the refusal.
///
/// # Errors
/// When the database fails.
pub async fn refused(
    db: &impl Connection,
    actor: impl Into<Actor>,
    event: Event,
    code: &str,
    now: i64,
) -> Result<(), DbError> {
    store::audit::add(db, row(actor.into(), event, code, now)).await
}

fn row(actor: Actor, event: Event, result: &str, now: i64) -> audit_record::Model {
    audit_record::Model {
        tenant_id: actor.tenant_id,
        id: new_id(),
        action: event.action.as_str().to_owned(),
        actor_kind: actor.kind.as_str().to_owned(),
        actor: actor.id,
        target_kind: event.target.is_some().then(|| event.action.target().to_owned()),
        target: event.target,
        result: result.to_owned(),
        request_id: actor.request_id,
        detail: event.detail.map(|it| it.to_string()),
        created_at: now,
    }
}
