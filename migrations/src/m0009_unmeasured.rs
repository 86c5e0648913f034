//! An index of the traces that no metric counts yet: those stored before metrics existed, until they
//! are counted. PostgreSQL builds it concurrently, because it takes long on a large table.

use sea_orm_migration::prelude::*;

use crate::table::create_concurrently;

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// A concurrent index build cannot run in a transaction.
    fn use_transaction(&self) -> Option<bool> {
        Some(false)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let of = "trace (tenant_id, started_at, id) WHERE NOT measured";
        create_concurrently(manager, "INDEX", "ix_trace_unmeasured", of).await
    }
}
