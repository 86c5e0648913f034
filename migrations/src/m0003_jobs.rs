//! The durable job queue.

use entities::job;
use sea_orm_migration::{prelude::*, schema::*};

use crate::table::{create_clustered, create_index};

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
        create_clustered(
            manager,
            Table::create()
                .table(job::Entity)
                .col(uuid(job::Column::TenantId))
                .col(uuid(job::Column::Id))
                .col(text(job::Column::Lane))
                .col(text(job::Column::Kind))
                .col(text(job::Column::Payload))
                .col(text(job::Column::Status))
                .col(big_integer(job::Column::RunAt))
                .col(integer(job::Column::Attempts))
                .col(integer(job::Column::MaxAttempts))
                .col(big_integer_null(job::Column::LeaseUntil))
                .col(big_integer(job::Column::Fence))
                .col(text_null(job::Column::LastError))
                .col(big_integer(job::Column::CreatedAt))
                .primary_key(Index::create().col(job::Column::TenantId).col(job::Column::Id))
                .to_owned(),
        )
        .await?;
        // Due tenants are searched across tenants; jobs are claimed within one.
        create_index(manager, "ix_job_ready", "job", "lane, run_at, tenant_id", Some("status = 'ready'"))
            .await?;
        create_index(manager, "ix_job_claim", "job", "tenant_id, lane, run_at, id", Some("status = 'ready'"))
            .await?;
        create_index(manager, "ix_job_lease", "job", "lease_until, tenant_id", Some("status = 'running'"))
            .await
    }
}
