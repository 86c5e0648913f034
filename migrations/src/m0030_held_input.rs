//! Held input: spans and log records that are kept for a while, so that they can be joined.

use entities::held_input;
use sea_orm_migration::{prelude::*, schema::*};

use crate::table::create_index;

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
        use held_input::Column;
        let table = Table::create()
            .table(held_input::Entity)
            .col(uuid(Column::TenantId))
            .col(uuid(Column::TraceId))
            .col(uuid(Column::Id))
            .col(uuid(Column::ProjectId))
            .col(small_integer(Column::Kind))
            .col(boolean(Column::Joined))
            .col(integer(Column::Items))
            .col(integer(Column::Size))
            .col(binary(Column::Data))
            .col(big_integer(Column::ReceivedAt))
            .primary_key(Index::create().col(Column::TenantId).col(Column::TraceId).col(Column::Id))
            .to_owned();
        // Not clustered: each row would be stored at the place of its trace, so that each insertion would change another page.
        manager.create_table(table).await?;
        // The deletion of expired rows.
        create_index(manager, "ix_held_input_time", "held_input", "tenant_id, received_at", None).await
    }
}
