//! Members, the audit log, quotas, rate limits, idempotency keys, provider credentials.

use entities::{
    audit_record, external_tenant, idempotency, member, provider_credential, quota_use, rate_window,
};
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
        people(manager).await?;
        limits(manager).await?;
        create_clustered(
            manager,
            Table::create()
                .table(provider_credential::Entity)
                .col(uuid(provider_credential::Column::TenantId))
                .col(text(provider_credential::Column::Provider))
                .col(blob(provider_credential::Column::SealedKey))
                .col(text(provider_credential::Column::Hint))
                .col(text_null(provider_credential::Column::BaseUrl))
                .col(text_null(provider_credential::Column::JudgeModelCheap))
                .col(text_null(provider_credential::Column::JudgeModelPremium))
                .col(text_null(provider_credential::Column::EmbeddingModel))
                .col(big_integer(provider_credential::Column::CreatedAt))
                .col(big_integer(provider_credential::Column::UpdatedAt))
                .primary_key(
                    Index::create()
                        .col(provider_credential::Column::TenantId)
                        .col(provider_credential::Column::Provider),
                )
                .to_owned(),
        )
        .await?;
        // Finds the projects with limited retention.
        create_index(
            manager,
            "ix_project_retention",
            "project",
            "tenant_id, id",
            Some("retention_days IS NOT NULL"),
        )
        .await
    }
}

async fn people(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    create_clustered(
        manager,
        Table::create()
            .table(member::Entity)
            .col(uuid(member::Column::TenantId))
            .col(uuid(member::Column::Id))
            .col(text(member::Column::Subject))
            .col(text(member::Column::Role))
            .col(text(member::Column::Status))
            .col(big_integer(member::Column::CreatedAt))
            .col(big_integer(member::Column::LastSeenAt))
            .col(big_integer(member::Column::UpdatedAt))
            .primary_key(Index::create().col(member::Column::TenantId).col(member::Column::Id))
            .to_owned(),
    )
    .await?;
    manager
        .create_index(
            Index::create()
                .name("ux_member_subject")
                .table(member::Entity)
                .col(member::Column::TenantId)
                .col(member::Column::Subject)
                .unique()
                .to_owned(),
        )
        .await?;
    create_clustered(
        manager,
        Table::create()
            .table(audit_record::Entity)
            .col(uuid(audit_record::Column::TenantId))
            .col(uuid(audit_record::Column::Id))
            .col(text(audit_record::Column::Action))
            .col(text(audit_record::Column::ActorKind))
            .col(text(audit_record::Column::Actor))
            .col(text_null(audit_record::Column::TargetKind))
            .col(text_null(audit_record::Column::Target))
            .col(text(audit_record::Column::Result))
            .col(text_null(audit_record::Column::RequestId))
            .col(text_null(audit_record::Column::Detail))
            .col(big_integer(audit_record::Column::CreatedAt))
            .primary_key(Index::create().col(audit_record::Column::TenantId).col(audit_record::Column::Id))
            .to_owned(),
    )
    .await?;
    create_index(manager, "ix_audit_record_time", "audit_record", "tenant_id, created_at, id", None).await?;
    manager
        .create_table(
            Table::create()
                .table(external_tenant::Entity)
                .col(text(external_tenant::Column::ExternalId).primary_key())
                .col(uuid(external_tenant::Column::TenantId))
                .to_owned(),
        )
        .await?;
    // Copies existing names; if two tenants have the same name, the older one keeps it.
    manager
        .get_connection()
        .execute_unprepared(
            "INSERT INTO external_tenant (external_id, tenant_id) \
             SELECT t.external_id, t.tenant_id FROM tenant t WHERE t.external_id IS NOT NULL \
             ORDER BY t.created_at, t.tenant_id ON CONFLICT DO NOTHING",
        )
        .await?;
    Ok(())
}

async fn limits(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    create_clustered(
        manager,
        Table::create()
            .table(quota_use::Entity)
            .col(uuid(quota_use::Column::TenantId))
            .col(integer(quota_use::Column::Month))
            .col(text(quota_use::Column::Quota))
            .col(small_integer(quota_use::Column::Slot))
            .col(big_integer(quota_use::Column::Used))
            .primary_key(
                Index::create()
                    .col(quota_use::Column::TenantId)
                    .col(quota_use::Column::Month)
                    .col(quota_use::Column::Quota)
                    .col(quota_use::Column::Slot),
            )
            .to_owned(),
    )
    .await?;
    create_clustered(
        manager,
        Table::create()
            .table(rate_window::Entity)
            .col(uuid(rate_window::Column::TenantId))
            .col(big_integer(rate_window::Column::StartsAt))
            .col(text(rate_window::Column::Bucket))
            .col(big_integer(rate_window::Column::Taken))
            .col(big_integer(rate_window::Column::Granted))
            .primary_key(
                Index::create()
                    .col(rate_window::Column::TenantId)
                    .col(rate_window::Column::StartsAt)
                    .col(rate_window::Column::Bucket),
            )
            .to_owned(),
    )
    .await?;
    create_clustered(
        manager,
        Table::create()
            .table(idempotency::Entity)
            .col(uuid(idempotency::Column::TenantId))
            .col(blob(idempotency::Column::KeyHash))
            .col(blob(idempotency::Column::BodyHash))
            .col(uuid(idempotency::Column::Holder))
            .col(small_integer_null(idempotency::Column::Status))
            .col(text_null(idempotency::Column::ContentType))
            .col(blob_null(idempotency::Column::Answer))
            .col(big_integer(idempotency::Column::ExpiresAt))
            .primary_key(Index::create().col(idempotency::Column::TenantId).col(idempotency::Column::KeyHash))
            .to_owned(),
    )
    .await?;
    create_index(manager, "ix_idempotency_expiry", "idempotency", "tenant_id, expires_at", None).await
}
