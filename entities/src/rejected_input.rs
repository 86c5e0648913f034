//! Table `rejected_input`: spans and traces that ingest rejected within accepted requests.

use sea_orm::entity::prelude::*;

/// The rejected items of a request, and of later requests that are counted with it.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "rejected_input")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Identifies the record.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The project of the request, by its header or its API key.
    pub project_id: Uuid,
    /// A word of [`api::rejection::RejectionSource`].
    pub source: String,
    /// Name of the SDK that sent the first rejected item.
    pub sdk: Option<String>,
    /// Version of the SDK.
    pub sdk_version: Option<String>,
    /// Number of rejected items.
    pub rejected: i64,
    /// Number of requests.
    pub requests: i64,
    /// JSON list of [`api::rejection::RejectionReason`], of the first request.
    pub reasons: String,
    /// ID of the first request.
    pub request_id: String,
    /// Time of the first request, microseconds.
    pub received_at: i64,
    /// Time of the last request, microseconds.
    pub last_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
