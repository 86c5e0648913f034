//! Roll-up tree and deltas of trace metrics, and feedback, which one metric counts.

use entities::{feedback, metric_delta, metric_node, trace};
use sea_orm_migration::{prelude::*, schema::*};

use crate::table::{create_clustered, create_index, dialect};

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

/// Name, columns and condition of the indexes.
const METRIC_INDEXES: &[(&str, &str, &str, Option<&str>)] = &[
    ("ix_feedback_time", "feedback", "tenant_id, created_at, id", None),
    ("ix_feedback_project", "feedback", "tenant_id, project_id, created_at, id", None),
    ("ix_feedback_label", "feedback", "tenant_id, label, created_at, id", None),
    ("ix_feedback_trace", "feedback", "tenant_id, trace_id, created_at, id", None),
    // The newest feedback of a trace determines how the trace is counted.
    ("ix_feedback_newest", "feedback", "tenant_id, trace_id, updated_at, id", None),
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction on both databases, because columns cannot be added twice.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in [
            boolean(trace::Column::Measured).default(false).to_owned(),
            small_integer_null(trace::Column::Feedback),
        ] {
            manager.alter_table(Table::alter().table(trace::Entity).add_column(column).to_owned()).await?;
        }
        create_clustered(
            manager,
            Table::create()
                .table(metric_delta::Entity)
                .col(uuid(metric_delta::Column::TenantId))
                .col(uuid(metric_delta::Column::Id))
                .col(blob(metric_delta::Column::Data))
                .col(integer(metric_delta::Column::Changes))
                .col(big_integer(metric_delta::Column::CreatedAt))
                .primary_key(
                    Index::create().col(metric_delta::Column::TenantId).col(metric_delta::Column::Id),
                )
                .to_owned(),
        )
        .await?;
        // Not clustered: the rows are too long for the primary key's B-tree.
        manager
            .create_table(
                Table::create()
                    .table(metric_node::Entity)
                    .col(uuid(metric_node::Column::TenantId))
                    .col(uuid(metric_node::Column::ProjectId))
                    .col(small_integer(metric_node::Column::Level))
                    .col(big_integer(metric_node::Column::Start))
                    .col(boolean(metric_node::Column::Leaf))
                    .col(blob(metric_node::Column::Data))
                    .primary_key(
                        Index::create()
                            .col(metric_node::Column::TenantId)
                            .col(metric_node::Column::ProjectId)
                            .col(metric_node::Column::Level)
                            .col(metric_node::Column::Start),
                    )
                    .to_owned(),
            )
            .await?;
        for table in ["metric_delta", "metric_node"] {
            if let Some(statement) = dialect(manager).keep_uncompressed(table, "data") {
                manager.get_connection().execute_unprepared(&statement).await?;
            }
        }
        create_clustered(
            manager,
            Table::create()
                .table(feedback::Entity)
                .col(uuid(feedback::Column::TenantId))
                .col(uuid(feedback::Column::TraceId))
                .col(uuid(feedback::Column::Id))
                .col(uuid(feedback::Column::ProjectId))
                .col(uuid_null(feedback::Column::SpanId))
                .col(text(feedback::Column::Label))
                .col(text_null(feedback::Column::Comment))
                .col(text_null(feedback::Column::UserId))
                .col(text(feedback::Column::Source))
                .col(text_null(feedback::Column::Metadata))
                .col(big_integer(feedback::Column::CreatedAt))
                .col(big_integer(feedback::Column::UpdatedAt))
                .primary_key(
                    Index::create()
                        .col(feedback::Column::TenantId)
                        .col(feedback::Column::TraceId)
                        .col(feedback::Column::Id),
                )
                .to_owned(),
        )
        .await?;
        manager
            .get_connection()
            .execute_unprepared(
                "CREATE UNIQUE INDEX ux_feedback_user ON feedback (tenant_id, trace_id, user_id, source) \
                 WHERE user_id IS NOT NULL",
            )
            .await?;
        for (name, table, columns, condition) in METRIC_INDEXES {
            create_index(manager, name, table, columns, *condition).await?;
        }
        Ok(())
    }
}
