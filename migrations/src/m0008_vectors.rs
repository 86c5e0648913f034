//! Embeddings of spans for semantic search.

use entities::span_vector::{Column, Entity};
use sea_orm_migration::{prelude::*, schema::*};

use crate::table::{create_index, dialect};

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
        let (connection, dialect) = (manager.get_connection(), dialect(manager));
        if let Some(statement) = dialect.before_vectors() {
            connection.execute_unprepared(statement).await?;
        }
        // Not clustered: the rows are too long for the primary key's B-tree.
        manager
            .create_table(
                Table::create()
                    .table(Entity)
                    .col(uuid(Column::TenantId))
                    .col(uuid(Column::TraceId))
                    .col(uuid(Column::Id))
                    .col(uuid(Column::ProjectId))
                    .col(big_integer(Column::StartedAt))
                    .col(big_integer(Column::KindHash))
                    .col(big_integer_null(Column::ModelHash))
                    .col(text(Column::EmbeddingModel))
                    .col(custom("vector", dialect.vector_type()).not_null())
                    .primary_key(Index::create().col(Column::TenantId).col(Column::TraceId).col(Column::Id))
                    .to_owned(),
            )
            .await?;
        // Contains all filter columns, so that matching rows can be counted in the index alone.
        create_index(
            manager,
            "ix_span_vector_filter",
            "span_vector",
            "tenant_id, project_id, started_at, embedding_model, kind_hash, model_hash",
            None,
        )
        .await?;
        for statement in dialect.after_vectors("span_vector") {
            connection.execute_unprepared(&statement).await?;
        }
        Ok(())
    }
}
