//! Traces, tags, spans, events and texts, with one index per filter of the trace list.

use entities::{body, event, span, trace};
use sea_orm_migration::{prelude::*, schema::*};

use crate::table::{create_clustered, create_index, dialect};

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

/// Name, columns and condition of every index on `trace`. All end with the sort order of the list, so
/// that a page is one contiguous range. Conditions exclude rows that no filter can select.
const TRACE_INDEXES: &[(&str, &str, Option<&str>)] = &[
    ("ix_trace_time", "tenant_id, started_at, id", None),
    ("ix_trace_project", "tenant_id, project_id, started_at, id", None),
    ("ix_trace_model", "tenant_id, model, started_at, id", Some("model IS NOT NULL")),
    ("ix_trace_name", "tenant_id, name, started_at, id", Some("name IS NOT NULL")),
    ("ix_trace_session", "tenant_id, session_id, started_at, id", Some("session_id IS NOT NULL")),
    ("ix_trace_user", "tenant_id, user_id, started_at, id", Some("user_id IS NOT NULL")),
    ("ix_trace_external", "tenant_id, external_id, started_at, id", Some("external_id IS NOT NULL")),
    ("ix_trace_error", "tenant_id, started_at, id", Some("error IS NOT NULL")),
    ("ix_trace_timeout", "tenant_id, started_at, id", Some("(failure_types & 1) <> 0")),
    ("ix_trace_rate_limit", "tenant_id, started_at, id", Some("(failure_types & 2) <> 0")),
    ("ix_trace_invalid_response", "tenant_id, started_at, id", Some("(failure_types & 4) <> 0")),
    ("ix_trace_context_length", "tenant_id, started_at, id", Some("(failure_types & 8) <> 0")),
    (
        "ix_trace_latency",
        "tenant_id, latency_class, started_at, id, latency_ms",
        Some("latency_class IS NOT NULL"),
    ),
    ("ix_trace_tokens", "tenant_id, token_class, started_at, id, total_tokens", None),
    ("ix_trace_cost", "tenant_id, cost_class, started_at, id, cost", Some("cost_class IS NOT NULL")),
    ("ix_trace_updated", "tenant_id, updated_at, id", None),
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction on both databases, so that an interrupted migration changes nothing.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create_clustered(
            manager,
            Table::create()
                .table(trace::Entity)
                .col(uuid(trace::Column::TenantId))
                .col(uuid(trace::Column::Id))
                .col(uuid(trace::Column::ProjectId))
                .col(text_null(trace::Column::ExternalId))
                .col(text_null(trace::Column::SessionId))
                .col(text_null(trace::Column::UserId))
                .col(text_null(trace::Column::Name))
                .col(text_null(trace::Column::Model))
                .col(text_null(trace::Column::Error))
                .col(small_integer(trace::Column::FailureTypes))
                .col(big_integer(trace::Column::StartedAt))
                .col(big_integer_null(trace::Column::EndedAt))
                .col(big_integer_null(trace::Column::LatencyMs))
                .col(small_integer_null(trace::Column::LatencyClass))
                .col(big_integer_null(trace::Column::PromptTokens))
                .col(big_integer_null(trace::Column::CompletionTokens))
                .col(big_integer(trace::Column::TotalTokens))
                .col(small_integer(trace::Column::TokenClass))
                .col(big_integer_null(trace::Column::Cost))
                .col(small_integer_null(trace::Column::CostClass))
                .col(text_null(trace::Column::Tags))
                .col(integer(trace::Column::SpanCount))
                .col(big_integer(trace::Column::ReadyAt))
                .col(boolean(trace::Column::Ready))
                .col(text_null(trace::Column::Given))
                .col(blob_null(trace::Column::Digest))
                .col(uuid_null(trace::Column::BodyId))
                .col(integer(trace::Column::BodyIndex))
                .col(big_integer(trace::Column::CreatedAt))
                .col(big_integer(trace::Column::UpdatedAt))
                .primary_key(Index::create().col(trace::Column::TenantId).col(trace::Column::Id))
                .to_owned(),
        )
        .await?;
        for (name, columns, condition) in TRACE_INDEXES {
            create_index(manager, name, "trace", columns, *condition).await?;
        }
        create_clustered(
            manager,
            Table::create()
                .table("trace_tag")
                .col(uuid("tenant_id"))
                .col(text("key"))
                .col(text("value"))
                .col(big_integer("started_at"))
                .col(uuid("trace_id"))
                .primary_key(
                    Index::create()
                        .col("tenant_id")
                        .col("key")
                        .col("value")
                        .col("started_at")
                        .col("trace_id"),
                )
                .to_owned(),
        )
        .await?;
        create_clustered(
            manager,
            Table::create()
                .table(span::Entity)
                .col(uuid(span::Column::TenantId))
                .col(uuid(span::Column::TraceId))
                .col(uuid(span::Column::Id))
                .col(uuid_null(span::Column::ParentId))
                .col(text(span::Column::Name))
                .col(text(span::Column::Kind))
                .col(text_null(span::Column::Model))
                .col(big_integer(span::Column::StartedAt))
                .col(big_integer_null(span::Column::EndedAt))
                .col(big_integer_null(span::Column::LatencyMs))
                .col(text_null(span::Column::Error))
                .col(small_integer_null(span::Column::Failure))
                .col(big_integer_null(span::Column::PromptTokens))
                .col(big_integer_null(span::Column::CompletionTokens))
                .col(big_integer_null(span::Column::Cost))
                .col(boolean(span::Column::Counted))
                .col(boolean(span::Column::CostCounted))
                .col(big_integer_null(span::Column::ResponseHash))
                .col(blob_null(span::Column::OtelSpanId))
                .col(text_null(span::Column::Hints))
                .col(uuid_null(span::Column::BodyId))
                .col(integer(span::Column::BodyIndex))
                .col(big_integer(span::Column::CreatedAt))
                .primary_key(
                    Index::create()
                        .col(span::Column::TenantId)
                        .col(span::Column::TraceId)
                        .col(span::Column::Id),
                )
                .to_owned(),
        )
        .await?;
        create_clustered(
            manager,
            Table::create()
                .table(event::Entity)
                .col(uuid(event::Column::TenantId))
                .col(uuid(event::Column::TraceId))
                .col(uuid(event::Column::Id))
                .col(uuid_null(event::Column::SpanId))
                .col(text(event::Column::Message))
                .col(text(event::Column::Level))
                .col(text_null(event::Column::Metadata))
                .col(big_integer(event::Column::CreatedAt))
                .primary_key(
                    Index::create()
                        .col(event::Column::TenantId)
                        .col(event::Column::TraceId)
                        .col(event::Column::Id),
                )
                .to_owned(),
        )
        .await?;
        manager
            .create_table(
                Table::create()
                    .table(body::Entity)
                    .col(uuid(body::Column::TenantId))
                    .col(uuid(body::Column::Id))
                    .col(blob(body::Column::Data))
                    .primary_key(Index::create().col(body::Column::TenantId).col(body::Column::Id))
                    .to_owned(),
            )
            .await?;
        if let Some(statement) = dialect(manager).keep_uncompressed("body", "data") {
            manager.get_connection().execute_unprepared(&statement).await?;
        }
        Ok(())
    }
}
