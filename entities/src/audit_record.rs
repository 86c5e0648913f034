//! Table `audit_record`: audited actions. Rows are inserted and read, never updated.

use sea_orm::entity::prelude::*;

/// An audited action.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "audit_record")]
pub struct Model {
    /// The tenant that the action concerns.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// A time-ordered UUID.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The action, such as `api_key.create`.
    pub action: String,
    /// A word of [`api::audit::ActorKind`].
    pub actor_kind: String,
    /// The session's subject, the key's ID, or the operator's account name.
    pub actor: String,
    /// Kind of the target; null for the tenant itself.
    pub target_kind: Option<String>,
    /// ID or name of the target.
    pub target: Option<String>,
    /// `ok`, or the error code of the response.
    pub result: String,
    /// ID of the request; null for the operator's commands.
    pub request_id: Option<String>,
    /// The changes, as a JSON object without secrets.
    pub detail: Option<String>,
    /// Microseconds.
    pub created_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
