//! Prompts, their deployments, and the scores and replays of their tests.

use entities::{prompt, prompt_deployment, prompt_replay, prompt_score};
use sea_orm_migration::{prelude::*, schema::*};

use crate::table::{create_clustered, create_index};

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

/// Name, table, columns and condition of the indexes. The ids of deployments, scores and pairs are ordered by time.
const PLAIN_INDEXES: &[(&str, &str, &str, Option<&str>)] = &[
    ("ix_prompt_deployment_project", "prompt_deployment", "tenant_id, project_id, id", None),
    ("ix_prompt_deployment_prompt", "prompt_deployment", "tenant_id, prompt_name, id", None),
    ("ix_prompt_deployment_status", "prompt_deployment", "tenant_id, status, id", None),
    ("ix_prompt_score_time", "prompt_score", "tenant_id, created_at", None),
    ("ix_prompt_replay_trace", "prompt_replay", "tenant_id, trace_id, id", None),
    ("ix_prompt_replay_time", "prompt_replay", "tenant_id, created_at", None),
];

/// Name, table, columns and condition of the unique indexes: a prompt has one served version and one running test.
const UNIQUE_INDEXES: &[(&str, &str, &str, Option<&str>)] = &[
    (
        "ux_prompt_deployment_version",
        "prompt_deployment",
        "tenant_id, project_id, prompt_name, version",
        None,
    ),
    (
        "ux_prompt_deployment_served",
        "prompt_deployment",
        "tenant_id, project_id, prompt_name",
        Some("status IN ('shipped', 'regressed')"),
    ),
    (
        "ux_prompt_deployment_running",
        "prompt_deployment",
        "tenant_id, project_id, prompt_name",
        Some("status = 'ab_running'"),
    ),
    ("ux_prompt_score_trace", "prompt_score", "tenant_id, trace_id, deployment_id", None),
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction on both databases, so that an interrupted migration changes nothing.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [prompts(), deployments(), scores(), replays()] {
            create_clustered(manager, table).await?;
        }
        for (name, table, columns, condition) in PLAIN_INDEXES {
            create_index(manager, name, table, columns, *condition).await?;
        }
        for (name, table, columns, condition) in UNIQUE_INDEXES {
            let filter = condition.map(|it| format!(" WHERE {it}")).unwrap_or_default();
            let sql = format!("CREATE UNIQUE INDEX {name} ON {table} ({columns}){filter}");
            manager.get_connection().execute_unprepared(&sql).await?;
        }
        Ok(())
    }
}

fn prompts() -> TableCreateStatement {
    use prompt::Column;
    Table::create()
        .table(prompt::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::ProjectId))
        .col(text(Column::Name))
        .col(integer(Column::LastVersion))
        .primary_key(Index::create().col(Column::TenantId).col(Column::ProjectId).col(Column::Name))
        .to_owned()
}

fn deployments() -> TableCreateStatement {
    use prompt_deployment::Column;
    Table::create()
        .table(prompt_deployment::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::Id))
        .col(uuid(Column::ProjectId))
        .col(text(Column::PromptName))
        .col(integer(Column::Version))
        .col(text(Column::Template))
        .col(text_null(Column::Model))
        .col(text(Column::Status))
        .col(text_null(Column::Reason))
        .col(uuid_null(Column::BaselineId))
        .col(uuid_null(Column::ReplacedId))
        .col(text(Column::Mode))
        .col(text_null(Column::Test))
        .col(text_null(Column::Scores))
        .col(text_null(Column::Result))
        .col(text_null(Column::Watch))
        .col(uuid_null(Column::SourceActionId))
        .col(text_null(Column::CreatedBy))
        .col(text_null(Column::DecidedBy))
        .col(big_integer_null(Column::DecidedAt))
        .col(text_null(Column::DecisionNote))
        .col(big_integer_null(Column::ShippedAt))
        .col(big_integer(Column::CreatedAt))
        .col(big_integer(Column::UpdatedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::Id))
        .to_owned()
}

fn scores() -> TableCreateStatement {
    use prompt_score::Column;
    Table::create()
        .table(prompt_score::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::Id))
        .col(uuid(Column::DeploymentId))
        .col(uuid(Column::TraceId))
        .col(uuid(Column::EvaluationId))
        .col(text(Column::CountedAs))
        .col(double(Column::Score))
        .col(big_integer(Column::CreatedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::Id))
        .to_owned()
}

fn replays() -> TableCreateStatement {
    use prompt_replay::Column;
    Table::create()
        .table(prompt_replay::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::DeploymentId))
        .col(uuid(Column::Id))
        .col(uuid(Column::TraceId))
        .col(uuid(Column::SpanId))
        .col(text(Column::Status))
        .col(integer(Column::Attempts))
        .col(big_integer_null(Column::CalledAt))
        .col(double_null(Column::BaselineScore))
        .col(double_null(Column::CandidateScore))
        .col(text_null(Column::Error))
        .col(big_integer(Column::CreatedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::DeploymentId).col(Column::Id))
        .to_owned()
}
