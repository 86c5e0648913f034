//! Rows of `body` may be text pages, with the text blocks of several traces.
//!
//! Nothing changes in the schema. Versions without this migration do not start, because they would not find the blocks, and
//! would leave them behind when they remove traces.

use sea_orm_migration::prelude::*;

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, _: &SchemaManager) -> Result<(), DbErr> {
        Ok(())
    }
}
