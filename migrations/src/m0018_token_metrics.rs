//! A column that says whether the metrics count the tokens of a trace: an earlier version counted traces without them.
//!
//! The migration changes no rows. Housekeeping counts the tokens in the background, and finds the traces by the index.

use entities::trace;
use sea_orm_migration::{prelude::*, schema::*};

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
        // The column exists if the index build was interrupted.
        if !manager.has_column("trace", "tokens_measured").await? {
            let column = boolean(trace::Column::TokensMeasured).default(false).to_owned();
            let change = Table::alter().table(trace::Entity).add_column(column).to_owned();
            manager.alter_table(change).await?;
        }
        let of = "trace (tenant_id, started_at, id) WHERE NOT tokens_measured";
        create_concurrently(manager, "INDEX", "ix_trace_tokens_unmeasured", of).await
    }
}
