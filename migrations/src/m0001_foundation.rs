//! Tenants, projects, keys, prices and settings.

use entities::{api_key, model_price, project, setting, tenant};
use sea_orm_migration::{prelude::*, schema::*};

use crate::table::create_clustered;

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
        manager
            .create_table(
                Table::create()
                    .table(setting::Entity)
                    .col(text(setting::Column::Name).primary_key())
                    .col(text(setting::Column::Value))
                    .to_owned(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table(tenant::Entity)
                    .col(uuid(tenant::Column::TenantId).primary_key())
                    .col(text(tenant::Column::Name))
                    .col(text_null(tenant::Column::ExternalId))
                    .col(text(tenant::Column::Plan))
                    .col(big_integer(tenant::Column::CreatedAt))
                    .to_owned(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table(project::Entity)
                    .col(uuid(project::Column::TenantId))
                    .col(uuid(project::Column::Id))
                    .col(text(project::Column::Name))
                    .col(boolean(project::Column::PromptAutoshipEnabled))
                    .col(integer_null(project::Column::RetentionDays))
                    .col(big_integer_null(project::Column::ArchivedAt))
                    .col(big_integer(project::Column::CreatedAt))
                    .col(big_integer(project::Column::UpdatedAt))
                    .primary_key(Index::create().col(project::Column::TenantId).col(project::Column::Id))
                    .foreign_key(
                        ForeignKey::create()
                            .name("fk_project_tenant")
                            .from(project::Entity, project::Column::TenantId)
                            .to(tenant::Entity, tenant::Column::TenantId),
                    )
                    .to_owned(),
            )
            .await?;
        manager
            .create_index(
                Index::create()
                    .name("ux_project_name")
                    .table(project::Entity)
                    .col(project::Column::TenantId)
                    .col(project::Column::Name)
                    .unique()
                    .to_owned(),
            )
            .await?;
        // A reference table: keys are looked up by hash before the tenant is known, so it has no
        // foreign keys.
        manager
            .create_table(
                Table::create()
                    .table(api_key::Entity)
                    .col(uuid(api_key::Column::Id).primary_key())
                    .col(uuid(api_key::Column::TenantId))
                    .col(uuid(api_key::Column::ProjectId))
                    .col(blob(api_key::Column::Hash).unique_key())
                    .col(text(api_key::Column::Name))
                    .col(text(api_key::Column::Prefix))
                    .col(text(api_key::Column::Scopes))
                    .col(text(api_key::Column::Role))
                    .col(big_integer(api_key::Column::CreatedAt))
                    .col(big_integer_null(api_key::Column::ExpiresAt))
                    .col(big_integer_null(api_key::Column::RevokedAt))
                    .to_owned(),
            )
            .await?;
        manager
            .create_index(
                Index::create()
                    .name("ix_api_key_tenant")
                    .table(api_key::Entity)
                    .col(api_key::Column::TenantId)
                    .col(api_key::Column::CreatedAt)
                    .to_owned(),
            )
            .await?;
        create_clustered(
            manager,
            Table::create()
                .table(model_price::Entity)
                .col(uuid(model_price::Column::TenantId))
                .col(text(model_price::Column::Name))
                .col(text(model_price::Column::Price))
                .col(big_integer(model_price::Column::UpdatedAt))
                .primary_key(
                    Index::create().col(model_price::Column::TenantId).col(model_price::Column::Name),
                )
                .to_owned(),
        )
        .await
    }
}
