//! Failures, failure clusters and failure rules. Every tenant gets the default rule.

use entities::{
    failure, failure_cluster, failure_clustering, failure_rule, failure_rule_match, failure_trend,
};
use sea_orm_migration::{prelude::*, schema::*};

use crate::table::{create_clustered, create_index};

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

/// Name, table and columns of the indexes.
const FAILURE_INDEXES: &[(&str, &str, &str)] = &[
    ("ix_failure_project", "failure", "tenant_id, project_id, id"),
    ("ix_failure_cluster", "failure", "tenant_id, cluster_id, id"),
    ("ix_failure_type", "failure", "tenant_id, failure_type, id"),
    ("ix_failure_cluster_seen", "failure_cluster", "tenant_id, last_seen, id"),
    ("ix_failure_cluster_project", "failure_cluster", "tenant_id, project_id, last_seen, id"),
    ("ix_failure_trend_hour", "failure_trend", "tenant_id, hour"),
    ("ix_failure_rule_time", "failure_rule", "tenant_id, created_at, id"),
    ("ix_failure_rule_match_time", "failure_rule_match", "tenant_id, matched_at"),
];

/// Name, table, columns and condition of the index of failures by model.
const MODEL_INDEX: (&str, &str, &str, &str) =
    ("ix_failure_model", "failure", "tenant_id, model, id", "model IS NOT NULL");

/// A span fails once, a regression is recorded once for its evaluation, and a rule matches a trace once. The indexes
/// also find the rows of a trace.
const UNIQUE_FAILURE_INDEXES: [&str; 2] = [
    "CREATE UNIQUE INDEX ux_failure_trace ON failure (tenant_id, trace_id, span_id, failure_type, source_id)",
    "CREATE UNIQUE INDEX ux_failure_rule_match_trace ON failure_rule_match (tenant_id, trace_id, id)",
];

/// The default rule of existing tenants, which has the tenant's id: any of the four failure types, whose bits are
/// 1, 2, 4 and 8.
const DEFAULT_RULES: &str = "INSERT INTO failure_rule (tenant_id, id, name, enabled, project_id, failure_types, \
    metric_name, max_score, filter, min_count, window_minutes, created_at, updated_at, last_fired_at) \
    SELECT tenant_id, tenant_id, 'Any failure', TRUE, NULL, 15, NULL, NULL, '{}', 1, 60, created_at, created_at, NULL \
    FROM tenant";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction on both databases, so that an interrupted migration changes nothing.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [failures(), clusters(), clusterings(), trends(), rules(), matches()] {
            create_clustered(manager, table).await?;
        }
        for (name, table, columns) in FAILURE_INDEXES {
            create_index(manager, name, table, columns, None).await?;
        }
        let (name, table, columns, condition) = MODEL_INDEX;
        create_index(manager, name, table, columns, Some(condition)).await?;
        for sql in UNIQUE_FAILURE_INDEXES.into_iter().chain([DEFAULT_RULES]) {
            manager.get_connection().execute_unprepared(sql).await?;
        }
        Ok(())
    }
}

fn failures() -> TableCreateStatement {
    use failure::Column;
    Table::create()
        .table(failure::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::Id))
        .col(uuid(Column::ProjectId))
        .col(uuid(Column::TraceId))
        .col(uuid(Column::SpanId))
        .col(small_integer(Column::FailureType))
        .col(uuid(Column::SourceId))
        .col(text(Column::Message))
        .col(text_null(Column::Model))
        .col(text(Column::SpanName))
        .col(uuid(Column::ClusterId))
        .col(big_integer(Column::CreatedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::Id))
        .to_owned()
}

fn clusters() -> TableCreateStatement {
    use failure_cluster::Column;
    Table::create()
        .table(failure_cluster::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::Id))
        .col(uuid(Column::ProjectId))
        .col(small_integer(Column::FailureType))
        .col(text(Column::SpanName))
        .col(text(Column::Fingerprint))
        .col(text(Column::Title))
        .col(text(Column::Status))
        .col(big_integer(Column::Count))
        .col(big_integer(Column::TraceCount))
        .col(big_integer(Column::FirstSeen))
        .col(big_integer(Column::LastSeen))
        .col(text(Column::Samples))
        .col(text(Column::Models))
        .col(big_integer_null(Column::ResolvedAt))
        .col(big_integer(Column::UpdatedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::Id))
        .to_owned()
}

fn clusterings() -> TableCreateStatement {
    use failure_clustering::Column;
    Table::create()
        .table(failure_clustering::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::ProjectId))
        .col(big_integer(Column::Version))
        .primary_key(Index::create().col(Column::TenantId).col(Column::ProjectId))
        .to_owned()
}

fn trends() -> TableCreateStatement {
    use failure_trend::Column;
    Table::create()
        .table(failure_trend::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::ClusterId))
        .col(big_integer(Column::Hour))
        .col(big_integer(Column::Count))
        .primary_key(Index::create().col(Column::TenantId).col(Column::ClusterId).col(Column::Hour))
        .to_owned()
}

fn rules() -> TableCreateStatement {
    use failure_rule::Column;
    Table::create()
        .table(failure_rule::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::Id))
        .col(text(Column::Name))
        .col(boolean(Column::Enabled))
        .col(uuid_null(Column::ProjectId))
        .col(small_integer(Column::FailureTypes))
        .col(text_null(Column::MetricName))
        .col(double_null(Column::MaxScore))
        .col(text(Column::Filter))
        .col(integer(Column::MinCount))
        .col(integer(Column::WindowMinutes))
        .col(big_integer(Column::CreatedAt))
        .col(big_integer(Column::UpdatedAt))
        .col(big_integer_null(Column::LastFiredAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::Id))
        .to_owned()
}

fn matches() -> TableCreateStatement {
    use failure_rule_match::Column;
    Table::create()
        .table(failure_rule_match::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::Id))
        .col(big_integer(Column::MatchedAt))
        .col(uuid(Column::TraceId))
        .primary_key(
            Index::create().col(Column::TenantId).col(Column::Id).col(Column::MatchedAt).col(Column::TraceId),
        )
        .to_owned()
}
