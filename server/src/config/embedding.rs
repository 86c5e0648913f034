//! Settings of the platform's embedding provider.

use anyhow::ensure;
use clap::Args;

use super::judge::check_address;

/// The provider for tenants without a credential of their own whose plan allows the platform's.
#[derive(Args, Clone, Default)]
pub struct EmbeddingSettings {
    /// Key of an embedding provider with OpenAI's protocol. The first start stores it, with the address
    /// and the model, as a credential of its tenant [default: none].
    #[arg(long, env = "LOUPE_EMBEDDING_API_KEY", value_name = "KEY", hide_env_values = true)]
    pub embedding_api_key: Option<String>,

    /// Base URL of the embedding provider: the part before `/embeddings`. It may be private, and
    /// without a key [default: OpenAI's].
    #[arg(long, env = "LOUPE_EMBEDDING_BASE_URL", value_name = "URL")]
    pub embedding_base_url: Option<String>,

    /// Embedding model with at most 1,536 dimensions [default: text-embedding-3-small].
    #[arg(long, env = "LOUPE_EMBEDDING_MODEL", value_name = "MODEL")]
    pub embedding_model: Option<String>,
}

/// The default model.
const DEFAULT_MODEL: &str = "text-embedding-3-small";

impl EmbeddingSettings {
    /// Treats empty settings as unset.
    pub fn drop_empty(&mut self) {
        for setting in [&mut self.embedding_api_key, &mut self.embedding_base_url, &mut self.embedding_model]
        {
            *setting = setting.take().filter(|it| !it.is_empty());
        }
    }

    /// Validates what clap cannot.
    ///
    /// # Errors
    ///
    /// Fails when a setting is invalid, or useless without another one.
    pub fn check(&self) -> anyhow::Result<()> {
        if let Some(key) = &self.embedding_api_key {
            let visible = key.bytes().all(|it| it.is_ascii_graphic());
            ensure!(visible, "LOUPE_EMBEDDING_API_KEY must have visible ASCII characters only");
        }
        if let Some(address) = &self.embedding_base_url {
            check_address("LOUPE_EMBEDDING_BASE_URL", address)?;
        }
        ensure!(
            self.embedding_model.is_none() || self.is_set(),
            "LOUPE_EMBEDDING_MODEL requires LOUPE_EMBEDDING_API_KEY or LOUPE_EMBEDDING_BASE_URL"
        );
        Ok(())
    }

    /// Returns whether a provider is configured. One without a key has a base URL.
    pub fn is_set(&self) -> bool {
        self.embedding_api_key.is_some() || self.embedding_base_url.is_some()
    }

    /// Returns the embedding model.
    pub fn model(&self) -> &str {
        self.embedding_model.as_deref().unwrap_or(DEFAULT_MODEL)
    }

    /// Returns the base URL without a trailing slash; `None` means OpenAI's.
    pub fn base_url(&self) -> Option<&str> {
        self.embedding_base_url.as_deref().map(|it| it.trim_end_matches('/'))
    }
}
