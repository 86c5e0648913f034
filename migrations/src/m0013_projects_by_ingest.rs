//! Which projects an ingest created by naming them: their number is limited, that of others is not. Of the
//! projects that are there already this is not known, so none of them counts.

use entities::project;
use sea_orm_migration::{prelude::*, schema::boolean};

/// See the module.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// All or nothing on both databases: a column can't be added twice.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = boolean(project::Column::CreatedByIngest).default(false).to_owned();
        manager.alter_table(Table::alter().table(project::Entity).add_column(column).to_owned()).await
    }
}
