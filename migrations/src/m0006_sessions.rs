//! An index of the traces that belong to sessions, by time, so that listing sessions skips traces
//! without a session.

use sea_orm_migration::prelude::*;

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
