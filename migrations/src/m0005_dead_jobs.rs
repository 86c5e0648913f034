//! An index that counts dead jobs without reading the others.

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
        create_index(manager, "ix_job_dead", "job", "lane, run_at", Some("status = 'dead'")).await
    }
}
