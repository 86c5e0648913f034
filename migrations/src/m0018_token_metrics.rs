//! Counts all traces again, because metrics now contain their tokens.
//!
//! The stored facts of a trace must equal its row: a later change subtracts the facts of the row. Housekeeping
//! counts the traces in the background, like those of a version without metrics.

use sea_orm_migration::prelude::*;

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

/// The statements that make all traces uncounted, in their order.
const RECOUNT_STATEMENTS: [&str; 3] = [
    "DELETE FROM metric_delta",
    "DELETE FROM metric_node",
    "UPDATE trace SET measured = false WHERE measured",
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction on both databases, so that no trace is counted twice.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for statement in RECOUNT_STATEMENTS {
            manager.get_connection().execute_unprepared(statement).await?;
        }
        Ok(())
    }
}
