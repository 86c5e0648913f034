//! An index of the traces that no metric counts yet: at first those from before there were metrics,
//! and none once they are counted. On a large table it takes a while, so PostgreSQL builds it beside
//! what else goes on.

use sea_orm_migration::prelude::*;

use crate::table::create_beside;

/// See the module.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Building beside other transactions is not possible within one.
    fn use_transaction(&self) -> Option<bool> {
        Some(false)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let of = "trace (tenant_id, started_at, id) WHERE NOT measured";
        create_beside(manager, "INDEX", "ix_trace_unmeasured", of).await
    }
}
