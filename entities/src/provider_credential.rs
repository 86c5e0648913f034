//! Table `provider_credential`: credentials of tenants for model providers.

use sea_orm::entity::prelude::*;

/// The credential for one provider.
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
    /// Base URL of the provider; null for its public address.
    pub base_url: Option<String>,
    /// Judge model of the tier `cheap`.
    pub judge_model_cheap: Option<String>,
    /// Judge model of the tier `premium`.
    pub judge_model_premium: Option<String>,
    /// Embedding model.
    pub embedding_model: Option<String>,
    /// Microseconds.
    pub created_at: i64,
    /// Microseconds.
    pub updated_at: i64,
}

/// Declares no relations: queries join explicitly, by tenant first.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
