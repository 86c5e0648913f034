//! Table `webhook_event`: events with at least one subscribed webhook.

use sea_orm::entity::prelude::*;

/// An event. All its deliveries send the same payload.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "webhook_event")]
pub struct Model {
    /// The owner.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// Unique within the tenant; the `id` in the payload.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The project that the event belongs to.
    pub project_id: Option<Uuid>,
    /// The trace that the event concerns. Deleting the trace deletes the event, because the payload has its texts.
    pub trace_id: Option<Uuid>,
    /// A word of [`api::webhook::EventType`].
    pub event_type: String,
    /// The body of the requests.
    pub payload: String,
    /// Microseconds.
    pub created_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
