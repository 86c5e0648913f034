//! An index of the traces that belong to sessions, by time: the way to the newest sessions does
//! not lead past traces that belong to none.

use sea_orm_migration::prelude::*;

use crate::table::create_index;

/// See the module.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// All or nothing on both databases, whenever the process is killed.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create_index(
            manager,
            "ix_trace_session_time",
            "trace",
            "tenant_id, started_at, id",
            Some("session_id IS NOT NULL"),
        )
        .await
    }
}
