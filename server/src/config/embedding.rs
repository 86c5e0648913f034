//! Settings of the platform's embedding provider.

use anyhow::ensure;
use clap::Args;

use super::judge::check_address;

/// Who embeds for tenants that have no credential of their own and whose plan allows that.
#[derive(Args, Clone, Default)]
pub struct EmbeddingSettings {
    /// Key of an embedding provider that speaks OpenAI's protocol. The first start stores it, with
    /// the address and the model, as a credential of its tenant [default: none].
    #[arg(long, env = "LOUPE_EMBEDDING_API_KEY", value_name = "KEY", hide_env_values = true)]
    pub embedding_api_key: Option<String>,

    /// Address of the embedding provider, up to the part before `/embeddings`. It may be a private
    /// one, and one without a key [default: OpenAI's].
    #[arg(long, env = "LOUPE_EMBEDDING_BASE_URL", value_name = "URL")]
    pub embedding_base_url: Option<String>,

    /// Model that embeds, of at most 1,536 dimensions [default: text-embedding-3-small].
    #[arg(long, env = "LOUPE_EMBEDDING_MODEL", value_name = "MODEL")]
    pub embedding_model: Option<String>,
}

/// Model unless another is set.
const MODEL: &str = "text-embedding-3-small";

impl EmbeddingSettings {
    /// Takes empty settings as unset.
    pub fn drop_empty(&mut self) {
        for setting in [&mut self.embedding_api_key, &mut self.embedding_base_url, &mut self.embedding_model]
        {
            *setting = setting.take().filter(|it| !it.is_empty());
        }
    }

    /// Checks what clap can't.
    ///
    /// # Errors
    /// When a setting can't be used, or does nothing without another one.
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
            "LOUPE_EMBEDDING_MODEL needs LOUPE_EMBEDDING_API_KEY or LOUPE_EMBEDDING_BASE_URL beside it"
        );
        Ok(())
    }

    /// Whether there is a provider at all. One without a key has an address of its own.
    pub fn is_set(&self) -> bool {
        self.embedding_api_key.is_some() || self.embedding_base_url.is_some()
    }

    /// The model that embeds.
    pub fn model(&self) -> &str {
        self.embedding_model.as_deref().unwrap_or(MODEL)
    }

    /// The address without a slash at its end; none is OpenAI's.
    pub fn base_url(&self) -> Option<&str> {
        self.embedding_base_url.as_deref().map(|it| it.trim_end_matches('/'))
    }
}
