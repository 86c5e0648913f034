//! Allows a rule to evaluate a trace again after a failed evaluation: the unique index excludes failed
//! ones. PostgreSQL builds it concurrently, because it takes long on a large table.

use sea_orm_migration::prelude::*;

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
        let of = "evaluation (tenant_id, rule_id, trace_id, source_action_id) \
                  WHERE rule_id IS NOT NULL AND status <> 'failed'";
        create_concurrently(manager, "UNIQUE INDEX", "ux_evaluation_rule_judged", of).await?;
        manager.get_connection().execute_unprepared("DROP INDEX IF EXISTS ux_evaluation_rule").await?;
        Ok(())
    }
}
