//! Cached, cache-write and reasoning tokens of spans and traces, the missing texts of a span, and the
//! origin of a trace's texts when its root has none. The new columns are null in existing rows, which
//! are not rewritten.

use entities::{span, trace};
use sea_orm_migration::{prelude::*, schema::*};

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction on both databases, because columns cannot be added twice.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in [
            big_integer_null(trace::Column::CachedInputTokens),
            big_integer_null(trace::Column::CacheWriteTokens),
            big_integer_null(trace::Column::ReasoningTokens),
            uuid_null(trace::Column::InputBodyId),
            integer_null(trace::Column::InputBodyIndex),
            uuid_null(trace::Column::OutputBodyId),
            integer_null(trace::Column::OutputBodyIndex),
        ] {
            manager.alter_table(Table::alter().table(trace::Entity).add_column(column).to_owned()).await?;
        }
        for column in [
            big_integer_null(span::Column::CachedInputTokens),
            big_integer_null(span::Column::CacheWriteTokens),
            big_integer_null(span::Column::ReasoningTokens),
            small_integer_null(span::Column::MissingTexts),
        ] {
            manager.alter_table(Table::alter().table(span::Entity).add_column(column).to_owned()).await?;
        }
        Ok(())
    }
}
