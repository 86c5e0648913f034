//! Table `webhook`: addresses of tenants that receive events.

use sea_orm::entity::prelude::*;

/// A webhook.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "webhook")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The address, `https`.
    pub url: String,
    /// The secret that signs requests, sealed for this column and row.
    pub secret: Vec<u8>,
    /// The secret before the last rotation, sealed for this column and row.
    pub previous_secret: Option<Vec<u8>>,
    /// Time until which the previous secret also signs, microseconds.
    pub previous_until: Option<i64>,
    /// JSON array: words of [`api::webhook::EventType`].
    pub events: String,
    /// Whether events are delivered.
    pub enabled: bool,
    /// Why the server disabled the webhook; null when it is enabled, or a user disabled it.
    pub disabled_reason: Option<String>,
    /// Time of the first failed attempt since the last success, microseconds.
    pub failing_since: Option<i64>,
    /// Time of the last successful attempt, microseconds.
    pub last_delivery_at: Option<i64>,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds.
    pub updated_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
