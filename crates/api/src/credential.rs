//! A tenant's own credentials for providers of models. The key itself is never answered.

use serde::{Deserialize, Serialize};

use crate::{Timestamp, enums::words};

words! {
    /// Whose models are called.
    Provider {
        /// OpenAI.
        OpenAi = "openai",
        /// Anthropic.
        Anthropic = "anthropic",
        /// Anyone who speaks OpenAI's protocol; needs a `base_url`.
        OpenAiCompatible = "openai_compatible",
    }
}

/// A stored credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ProviderCredential {
    /// Whose.
    pub provider: Provider,
    /// The last 4 characters of the key.
    pub api_key_last4: String,
    /// Where the provider answers; null for its public address.
    pub base_url: Option<String>,
    /// Judge of the tier `cheap`; null for the default.
    pub judge_model_cheap: Option<String>,
    /// Judge of the tier `premium`; null for the default.
    pub judge_model_premium: Option<String>,
    /// Model that embeds; null if this credential is not for embedding.
    pub embedding_model: Option<String>,
    /// When it was first stored.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Body of `PUT /v1/provider-credentials/{provider}`: what is absent or null is unset, but for
/// the key, which stays.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewProviderCredential {
    /// The provider's key. Needed the first time, and whenever `base_url` changes.
    #[serde(default)]
    pub api_key: Option<String>,
    /// Where the provider answers, `https`.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Judge of the tier `cheap`.
    #[serde(default)]
    pub judge_model_cheap: Option<String>,
    /// Judge of the tier `premium`.
    #[serde(default)]
    pub judge_model_premium: Option<String>,
    /// Model that embeds.
    #[serde(default)]
    pub embedding_model: Option<String>,
}

/// All credentials of a tenant.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ProviderCredentialList {
    /// One a provider, in the order of their names.
    pub provider_credentials: Vec<ProviderCredential>,
    /// Never: there are three providers.
    pub has_more: bool,
    /// Always null.
    pub next_cursor: Option<String>,
}
