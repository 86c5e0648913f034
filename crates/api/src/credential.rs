//! A tenant's credentials for model providers. No response contains the key itself.

use serde::{Deserialize, Serialize};

use crate::{Timestamp, enums::words};

words! {
    /// A protocol and service of language models.
    Provider {
        /// OpenAI.
        OpenAi = "openai",
        /// Anthropic.
        Anthropic = "anthropic",
        /// Any service that implements OpenAI's protocol; requires `base_url`.
        OpenAiCompatible = "openai_compatible",
    }
}

/// A stored credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ProviderCredential {
    /// The provider that the key belongs to.
    pub provider: Provider,
    /// The last 4 characters of the key.
    pub api_key_last4: String,
    /// Base URL of the provider; null for its public address.
    pub base_url: Option<String>,
    /// Judge model of the tier `cheap`; null for the default.
    pub judge_model_cheap: Option<String>,
    /// Judge model of the tier `premium`; null for the default.
    pub judge_model_premium: Option<String>,
    /// Embedding model; null if this credential is not used for embedding.
    pub embedding_model: Option<String>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// Body of `PUT /v1/provider-credentials/{provider}`. Absent or null fields are cleared, except
/// `api_key`, which keeps its value.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewProviderCredential {
    /// The provider's key. Required for a new credential and when `base_url` changes.
    #[serde(default)]
    pub api_key: Option<String>,
    /// Base URL of the provider, `https`.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Judge model of the tier `cheap`.
    #[serde(default)]
    pub judge_model_cheap: Option<String>,
    /// Judge model of the tier `premium`.
    #[serde(default)]
    pub judge_model_premium: Option<String>,
    /// Embedding model.
    #[serde(default)]
    pub embedding_model: Option<String>,
}

/// All credentials of a tenant.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ProviderCredentialList {
    /// One per provider, ordered by provider.
    pub provider_credentials: Vec<ProviderCredential>,
    /// Always false: the list is complete.
    pub has_more: bool,
    /// Always null.
    pub next_cursor: Option<String>,
}
