//! Table `webhook_delivery`: deliveries of events to webhooks.

use sea_orm::entity::prelude::*;

/// The delivery of an event to a webhook.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "webhook_delivery")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The webhook, which may have been deleted.
    pub webhook_id: Uuid,
    /// The event.
    pub event_id: Uuid,
    /// A word of [`api::webhook::EventType`].
    pub event_type: String,
    /// A word of [`api::webhook::DeliveryStatus`].
    pub status: String,
    /// Number of attempts that were made.
    pub attempts: i32,
    /// Time of the next attempt, microseconds; null when there is none. A worker that claims the delivery sets
    /// it to the end of its claim.
    pub due_at: Option<i64>,
    /// Microseconds.
    pub created_at: i64,
    /// Time at which the delivery got its final status, microseconds.
    pub completed_at: Option<i64>,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
