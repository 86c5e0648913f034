//! What failed may be asked for again: a rule judges a trace once, and an evaluation that failed is no
//! judgement. On a large table the index takes a while, so PostgreSQL builds it beside what else goes on.

use sea_orm_migration::prelude::*;

use crate::table::create_beside;

/// See the module.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// Building beside other transactions is not possible within one.
    fn use_transaction(&self) -> Option<bool> {
        Some(false)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let of = "evaluation (tenant_id, rule_id, trace_id, source_action_id) \
                  WHERE rule_id IS NOT NULL AND status <> 'failed'";
        create_beside(manager, "UNIQUE INDEX", "ux_evaluation_rule_judged", of).await?;
        manager.get_connection().execute_unprepared("DROP INDEX IF EXISTS ux_evaluation_rule").await?;
        Ok(())
    }
}
