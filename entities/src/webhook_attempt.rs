//! Table `webhook_attempt`: requests that deliveries sent.

use sea_orm::entity::prelude::*;

/// An attempt to deliver an event.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "webhook_attempt")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// The delivery.
    #[sea_orm(primary_key, auto_increment = false)]
    pub delivery_id: Uuid,
    /// The number of the attempt, from 1 on.
    #[sea_orm(primary_key, auto_increment = false)]
    pub attempt: i32,
    /// The webhook of the delivery.
    pub webhook_id: Uuid,
    /// Microseconds.
    pub started_at: i64,
    /// HTTP status of the response; 0 without a response.
    pub status: i32,
    /// Duration in milliseconds.
    pub latency_ms: i64,
    /// Why the attempt failed.
    pub error: Option<String>,
    /// The first 4 KiB of the response body, or less if the webhook has newer long responses.
    pub response_body: Option<String>,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
