//! Webhooks, their events and the log of their deliveries.

use entities::{webhook, webhook_attempt, webhook_delivery, webhook_event};
use sea_orm_migration::{prelude::*, schema::*};

use crate::table::{create_clustered, create_index};

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

/// Name, table, columns and condition of the indexes.
const WEBHOOK_INDEXES: &[(&str, &str, &str, Option<&str>)] = &[
    ("ix_webhook_time", "webhook", "tenant_id, created_at, id", None),
    ("ix_webhook_event_time", "webhook_event", "tenant_id, created_at", None),
    // Only for the deletion of a trace.
    ("ix_webhook_event_trace", "webhook_event", "tenant_id, trace_id", Some("trace_id IS NOT NULL")),
    ("ix_webhook_delivery_webhook", "webhook_delivery", "tenant_id, webhook_id, created_at, id", None),
    ("ix_webhook_delivery_time", "webhook_delivery", "tenant_id, created_at", None),
    // Only deliveries that are not finished, so it stays small.
    (
        "ix_webhook_delivery_due",
        "webhook_delivery",
        "tenant_id, webhook_id, due_at, id",
        Some("status = 'pending'"),
    ),
    ("ix_webhook_attempt_time", "webhook_attempt", "tenant_id, started_at", None),
    // The long responses that are kept, a few for each webhook.
    (
        "ix_webhook_attempt_response",
        "webhook_attempt",
        "tenant_id, webhook_id, started_at",
        Some("length(response_body) > 128"),
    ),
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction on both databases, so that an interrupted migration changes nothing.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create_clustered(manager, webhooks()).await?;
        manager.create_table(events()).await?;
        manager.create_table(deliveries()).await?;
        manager.create_table(attempts()).await?;
        for (name, table, columns, condition) in WEBHOOK_INDEXES {
            create_index(manager, name, table, columns, *condition).await?;
        }
        Ok(())
    }
}

fn webhooks() -> TableCreateStatement {
    use webhook::Column;
    Table::create()
        .table(webhook::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::Id))
        .col(text(Column::Url))
        .col(blob(Column::Secret))
        .col(blob_null(Column::PreviousSecret))
        .col(big_integer_null(Column::PreviousUntil))
        .col(text(Column::Events))
        .col(boolean(Column::Enabled))
        .col(text_null(Column::DisabledReason))
        .col(big_integer_null(Column::FailingSince))
        .col(big_integer_null(Column::LastDeliveryAt))
        .col(big_integer(Column::CreatedAt))
        .col(big_integer(Column::UpdatedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::Id))
        .to_owned()
}

fn events() -> TableCreateStatement {
    use webhook_event::Column;
    Table::create()
        .table(webhook_event::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::Id))
        .col(uuid_null(Column::ProjectId))
        .col(uuid_null(Column::TraceId))
        .col(text(Column::EventType))
        .col(text(Column::Payload))
        .col(big_integer(Column::CreatedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::Id))
        .to_owned()
}

fn deliveries() -> TableCreateStatement {
    use webhook_delivery::Column;
    Table::create()
        .table(webhook_delivery::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::Id))
        .col(uuid(Column::WebhookId))
        .col(uuid(Column::EventId))
        .col(text(Column::EventType))
        .col(text(Column::Status))
        .col(integer(Column::Attempts))
        .col(big_integer_null(Column::DueAt))
        .col(big_integer(Column::CreatedAt))
        .col(big_integer_null(Column::CompletedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::Id))
        .to_owned()
}

fn attempts() -> TableCreateStatement {
    use webhook_attempt::Column;
    Table::create()
        .table(webhook_attempt::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::DeliveryId))
        .col(integer(Column::Attempt))
        .col(uuid(Column::WebhookId))
        .col(big_integer(Column::StartedAt))
        .col(integer(Column::Status))
        .col(big_integer(Column::LatencyMs))
        .col(text_null(Column::Error))
        .col(text_null(Column::ResponseBody))
        .primary_key(Index::create().col(Column::TenantId).col(Column::DeliveryId).col(Column::Attempt))
        .to_owned()
}
