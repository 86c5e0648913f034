//! Rejected input: spans and traces that ingest rejected within accepted requests.

use entities::rejected_input;
use sea_orm_migration::{prelude::*, schema::*};

use crate::table::{create_clustered, create_index};

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction on both databases, so that an interrupted migration changes nothing.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        use rejected_input::Column;
        let table = Table::create()
            .table(rejected_input::Entity)
            .col(uuid(Column::TenantId))
            .col(uuid(Column::Id))
            .col(uuid(Column::ProjectId))
            .col(text(Column::Source))
            .col(text_null(Column::Sdk))
            .col(text_null(Column::SdkVersion))
            .col(big_integer(Column::Rejected))
            .col(big_integer(Column::Requests))
            .col(text(Column::Reasons))
            .col(text(Column::RequestId))
            .col(big_integer(Column::ReceivedAt))
            .col(big_integer(Column::LastAt))
            .primary_key(Index::create().col(Column::TenantId).col(Column::Id))
            .to_owned();
        create_clustered(manager, table).await?;
        // Lists, and the deletion of expired rows.
        create_index(manager, "ix_rejected_input_time", "rejected_input", "tenant_id, received_at, id", None)
            .await
    }
}
