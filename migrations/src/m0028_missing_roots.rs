//! A column that says why a trace has no ended root span. Stored traces count as complete.

use entities::trace;
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
        let column =
            small_integer(trace::Column::MissingRoot).default(trace::MissingRoot::None.code()).to_owned();
        let change = Table::alter().table(trace::Entity).add_column(column).to_owned();
        manager.alter_table(change).await
    }
}
