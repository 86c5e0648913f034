//! Table `provider_credential`: a tenant's own access to providers of models.

use sea_orm::entity::prelude::*;

/// One provider.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "provider_credential")]
pub struct Model {
    /// The tenant.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    /// A word of [`api::credential::Provider`].
    #[sea_orm(primary_key, auto_increment = false)]
    pub provider: String,
    /// The provider's key, sealed for this tenant and provider.
    pub sealed_key: Vec<u8>,
    /// The last 4 characters of the key.
    pub hint: String,
    /// Where the provider answers; null for its public address.
    pub base_url: Option<String>,
    /// Judge of the tier `cheap`.
    pub judge_model_cheap: Option<String>,
    /// Judge of the tier `premium`.
    pub judge_model_premium: Option<String>,
    /// Model that embeds.
    pub embedding_model: Option<String>,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds.
    pub updated_at: i64,
}

/// No relations are declared: joins are written where they are needed, tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
