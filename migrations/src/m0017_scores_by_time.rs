//! An index of the scores of each project by the time at which they were computed, for the detection of
//! anomalies. PostgreSQL builds it concurrently, because it takes long on a large table.

use sea_orm_migration::prelude::*;

use crate::table::create_concurrently;

/// The migration that this module describes.
#[derive(DeriveMigrationName)]
pub struct Migration;

/// The index contains all columns of the query, which therefore reads no rows of the table.
const SCORE_INDEX: &str = "evaluation (tenant_id, project_id, completed_at, metric_name, score) \
    WHERE status = 'complete' AND context = 'fresh' AND score IS NOT NULL";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// A concurrent index build cannot run in a transaction.
    fn use_transaction(&self) -> Option<bool> {
        Some(false)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create_concurrently(manager, "INDEX", "ix_evaluation_score", SCORE_INDEX).await
    }
}
