//! Policies and control actions.

use entities::{control_action, policy};
use sea_orm_migration::{prelude::*, schema::*};

use crate::table::{create_clustered, create_index};

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

/// Name, table, columns and condition of the indexes. The ids of actions are ordered by time, so an index that ends with
/// the id has the order of the list.
const CONTROL_LOOP_INDEXES: &[(&str, &str, &str, Option<&str>)] = &[
    ("ix_policy_time", "policy", "tenant_id, created_at, id", None),
    ("ix_control_action_trace", "control_action", "tenant_id, trace_id, id", None),
    ("ix_control_action_project", "control_action", "tenant_id, project_id, id", None),
    ("ix_control_action_policy", "control_action", "tenant_id, policy_id, id", Some("policy_id IS NOT NULL")),
    (
        "ix_control_action_called",
        "control_action",
        "tenant_id, policy_id, called_at",
        Some("called_at IS NOT NULL"),
    ),
    ("ix_control_action_pending", "control_action", "tenant_id, id", Some("status = 'pending_approval'")),
    (
        "ix_control_action_retry_cap",
        "control_action",
        "tenant_id, project_id, id",
        Some("escalation_reason = 'retry_threshold_exceeded'"),
    ),
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Runs in a transaction on both databases, so that an interrupted migration changes nothing.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [policies(), control_actions()] {
            create_clustered(manager, table).await?;
        }
        for (name, table, columns, condition) in CONTROL_LOOP_INDEXES {
            create_index(manager, name, table, columns, *condition).await?;
        }
        Ok(())
    }
}

fn policies() -> TableCreateStatement {
    use policy::Column;
    Table::create()
        .table(policy::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::Id))
        .col(uuid(Column::ProjectId))
        .col(text(Column::Name))
        .col(boolean(Column::Enabled))
        .col(text_null(Column::TriggerType))
        .col(small_integer(Column::FailureTypes))
        .col(text_null(Column::MetricName))
        .col(double_null(Column::MaxScore))
        .col(text(Column::ActionType))
        .col(text(Column::ActionConfig))
        .col(blob_null(Column::CallbackSecret))
        .col(boolean(Column::RequireApproval))
        .col(small_integer(Column::MaxRetryDepth))
        .col(small_integer(Column::MaxCascadeDepth))
        .col(integer(Column::CooldownSeconds))
        .col(big_integer_null(Column::DailyBudget))
        .col(big_integer(Column::CreatedAt))
        .col(big_integer(Column::UpdatedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::Id))
        .to_owned()
}

fn control_actions() -> TableCreateStatement {
    use control_action::Column;
    Table::create()
        .table(control_action::Entity)
        .col(uuid(Column::TenantId))
        .col(uuid(Column::Id))
        .col(uuid(Column::ProjectId))
        .col(uuid(Column::TraceId))
        .col(uuid_null(Column::SpanId))
        .col(uuid_null(Column::PolicyId))
        .col(text(Column::ActionType))
        .col(text(Column::RequestedType))
        .col(text(Column::ActionConfig))
        .col(text(Column::Status))
        .col(boolean(Column::RequireApproval))
        .col(boolean(Column::IsCounted))
        .col(text_null(Column::EscalationReason))
        .col(integer_null(Column::RetryCount))
        .col(text_null(Column::TriggerType))
        .col(uuid_null(Column::TriggerId))
        .col(uuid_null(Column::RemediatedSpanId))
        .col(text_null(Column::Error))
        .col(text_null(Column::RequestedBy))
        .col(text_null(Column::DecidedBy))
        .col(big_integer_null(Column::DecidedAt))
        .col(integer(Column::Attempts))
        .col(big_integer_null(Column::CalledAt))
        .col(big_integer_null(Column::Cost))
        .col(double_null(Column::Similarity))
        .col(big_integer_null(Column::CompletedAt))
        .col(big_integer(Column::CreatedAt))
        .col(big_integer(Column::UpdatedAt))
        .primary_key(Index::create().col(Column::TenantId).col(Column::Id))
        .to_owned()
}
