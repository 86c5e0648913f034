//! A column with the redaction settings of a project. Redaction is off in existing projects.

use entities::project;
use sea_orm_migration::{prelude::*, schema::*};

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
        let column = text_null(project::Column::Redaction);
        let change = Table::alter().table(project::Entity).add_column(column).to_owned();
        manager.alter_table(change).await
    }
}
