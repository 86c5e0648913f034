//! Table `audit_record`: who did what of consequence. Rows are added and read, never changed.

use sea_orm::entity::prelude::*;

/// One sensitive action.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "audit_record")]
pub struct Model {
    /// Whose tenant it was done to.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// A time-ordered UUID.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// What was done, such as `api_key.create`.
    pub action: String,
    /// A word of [`api::audit::ActorKind`].
    pub actor_kind: String,
    /// A session's subject, a key's id, or who runs the operator's commands.
    pub actor: String,
    /// Kind of what it was done to; null when it was the tenant itself.
    pub target_kind: Option<String>,
    /// Its id or name.
    pub target: Option<String>,
    /// `ok`, or the code of the error that was answered.
    pub result: String,
    /// The request's id; null for the operator's commands.
    pub request_id: Option<String>,
    /// What changed, as a JSON object without secrets.
    pub detail: Option<String>,
    /// Microseconds.
    pub created_at: i64,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
