//! Records which projects ingest created: the number of such projects is limited. Existing projects are
//! not counted, because their origin is unknown.

use entities::project;
use sea_orm_migration::{prelude::*, schema::boolean};

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction on both databases, because a column cannot be added twice.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = boolean(project::Column::CreatedByIngest).default(false).to_owned();
        manager.alter_table(Table::alter().table(project::Entity).add_column(column).to_owned()).await
    }
}
