//! Dead jobs can be counted without reading the others.

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
        create_index(manager, "ix_job_dead", "job", "lane, run_at", Some("status = 'dead'")).await
    }
}
