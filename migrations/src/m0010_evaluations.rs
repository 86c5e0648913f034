//! Evaluations, eval rules and custom evaluators.

use entities::{eval_bulk, eval_rule, evaluation, evaluator, rule_decision};
use sea_orm_migration::{prelude::*, schema::*};

use crate::table::{create_clustered, create_index};

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

/// Name, table, columns and condition of the indexes.
const EVALUATION_INDEXES: &[(&str, &str, &str, Option<&str>)] = &[
    ("ix_evaluation_time", "evaluation", "tenant_id, created_at, id", None),
    ("ix_evaluation_project", "evaluation", "tenant_id, project_id, created_at, id", None),
    ("ix_evaluation_metric", "evaluation", "tenant_id, metric_name, created_at, id", None),
    // By ID and not by time: deleting a trace uses this index, and a trace has few evaluations.
    ("ix_evaluation_trace", "evaluation", "tenant_id, trace_id, id", None),
    (
        "ix_evaluation_rule_time",
        "evaluation",
        "tenant_id, rule_id, created_at, id",
        Some("rule_id IS NOT NULL"),
    ),
    ("ix_evaluation_bulk", "evaluation", "tenant_id, bulk_id, status", Some("bulk_id IS NOT NULL")),
    // Excludes the most common value, so that rare labels are found quickly.
    ("ix_evaluation_label", "evaluation", "tenant_id, label, created_at, id", Some("label <> 'pass'")),
    (
        "ix_evaluation_unfinished",
        "evaluation",
        "tenant_id, status, created_at, id",
        Some("status <> 'complete'"),
    ),
    ("ix_eval_rule_time", "eval_rule", "tenant_id, created_at, id", None),
    ("ix_evaluator_time", "evaluator", "tenant_id, created_at, name", None),
];

/// A rule evaluates a trace once, and the output of each control action once.
const UNIQUE_RULE_EVALUATION_INDEX: &str = "CREATE UNIQUE INDEX ux_evaluation_rule ON evaluation \
    (tenant_id, rule_id, trace_id, source_action_id) WHERE rule_id IS NOT NULL";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction on both databases, so that an interrupted migration changes nothing.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(evaluations()).await?;
        create_clustered(manager, rules()).await?;
        create_clustered(manager, decisions()).await?;
        create_clustered(manager, evaluators()).await?;
        create_clustered(manager, bulk_runs()).await?;
        manager.get_connection().execute_unprepared(UNIQUE_RULE_EVALUATION_INDEX).await?;
        for (name, table, columns, condition) in EVALUATION_INDEXES {
            create_index(manager, name, table, columns, *condition).await?;
        }
        Ok(())
    }
}

fn evaluations() -> TableCreateStatement {
    use evaluation::Column;
    Table::create()
        .table(evaluation::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::Id))
        .col(uuid(Column::TraceId))
        .col(uuid(Column::ProjectId))
        .col(uuid_null(Column::SpanId))
        .col(text(Column::MetricName))
        .col(text(Column::EvaluatorType))
        .col(text(Column::EvaluatorVersion))
        .col(text_null(Column::Config))
        .col(text_null(Column::ModelTier))
        .col(text(Column::Status))
        .col(text(Column::Context))
        .col(uuid(Column::SourceActionId))
        .col(uuid_null(Column::OriginalEvaluationId))
        .col(uuid_null(Column::RuleId))
        .col(uuid_null(Column::BulkId))
        .col(double_null(Column::Score))
        .col(text_null(Column::Label))
        .col(text_null(Column::Reasoning))
        .col(text_null(Column::Error))
        .col(text_null(Column::JudgeModel))
        .col(big_integer_null(Column::PromptTokens))
        .col(big_integer_null(Column::CompletionTokens))
        .col(big_integer_null(Column::Cost))
        .col(integer(Column::Attempts))
        .col(integer(Column::Returns))
        .col(integer(Column::Asked))
        .col(integer_null(Column::QuotaMonth))
        .col(big_integer(Column::CreatedAt))
        .col(big_integer_null(Column::CompletedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::Id))
        .to_owned()
}

fn rules() -> TableCreateStatement {
    use eval_rule::Column;
    Table::create()
        .table(eval_rule::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::Id))
        .col(uuid(Column::ProjectId))
        .col(text(Column::MetricName))
        .col(text(Column::EvaluatorType))
        .col(text(Column::Config))
        .col(boolean(Column::Enabled))
        .col(text(Column::ModelTier))
        .col(double_null(Column::MinScoreDrop))
        .col(text(Column::Filter))
        .col(double(Column::SampleRate))
        .col(text_null(Column::PausedReason))
        .col(big_integer_null(Column::PausedAt))
        .col(big_integer(Column::CreatedAt))
        .col(big_integer(Column::UpdatedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::Id))
        .to_owned()
}

fn decisions() -> TableCreateStatement {
    use rule_decision::Column;
    Table::create()
        .table(rule_decision::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::TraceId))
        .col(uuid(Column::Id))
        .col(text(Column::Decision))
        .col(text(Column::Detail))
        .col(big_integer(Column::DecidedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::TraceId).col(Column::Id))
        .to_owned()
}

fn evaluators() -> TableCreateStatement {
    use evaluator::Column;
    Table::create()
        .table(evaluator::Entity)
        .col(uuid(Column::TenantId))
        .col(text(Column::Name))
        .col(big_integer(Column::Version))
        .col(text(Column::EvaluatorType))
        .col(text(Column::Definition))
        .col(big_integer_null(Column::DeletedAt))
        .col(big_integer(Column::CreatedAt))
        .col(big_integer(Column::UpdatedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::Name))
        .to_owned()
}

fn bulk_runs() -> TableCreateStatement {
    use eval_bulk::Column;
    Table::create()
        .table(eval_bulk::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::Id))
        .col(uuid_null(Column::RuleId))
        .col(text(Column::MetricName))
        .col(text(Column::EvaluatorType))
        .col(text_null(Column::ModelTier))
        .col(text(Column::Config))
        .col(text(Column::Filter))
        .col(big_integer(Column::Matched))
        .col(big_integer(Column::Granted))
        .col(big_integer(Column::Queued))
        .col(boolean(Column::Filled))
        .col(big_integer_null(Column::PositionAt))
        .col(uuid_null("position_id"))
        .col(integer_null(Column::QuotaMonth))
        .col(text_null(Column::Detail))
        .col(big_integer(Column::CreatedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::Id))
        .to_owned()
}
