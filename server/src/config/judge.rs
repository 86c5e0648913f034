//! Settings of the platform's judge providers.

use std::time::Duration;

use anyhow::{Context, ensure};
use api::{credential::Provider, eval::ModelTier};
use clap::Args;
use url::Url;

/// The judges for tenants below Team, and the default models.
#[derive(Args, Clone, Default)]
pub struct JudgeSettings {
    /// OpenAI key for judging. The first start stores it, with address and models, as a credential of
    /// its tenant [default: none].
    #[arg(long, env = "LOUPE_JUDGE_OPENAI_API_KEY", value_name = "KEY", hide_env_values = true)]
    pub judge_openai_api_key: Option<String>,

    /// Base URL of OpenAI, or of a service with its protocol: the part before `/chat/completions`. It
    /// may be private, and without a key [default: OpenAI's].
    #[arg(long, env = "LOUPE_JUDGE_OPENAI_BASE_URL", value_name = "URL")]
    pub judge_openai_base_url: Option<String>,

    /// OpenAI judge model of the tier `cheap`, also the default for tenants [default: gpt-6-luna].
    #[arg(long, env = "LOUPE_JUDGE_OPENAI_CHEAP_MODEL", value_name = "MODEL")]
    pub judge_openai_cheap_model: Option<String>,

    /// OpenAI judge model of the tier `premium` [default: gpt-6.1-sol].
    #[arg(long, env = "LOUPE_JUDGE_OPENAI_PREMIUM_MODEL", value_name = "MODEL")]
    pub judge_openai_premium_model: Option<String>,

    /// Anthropic key for judging; also stored by the first start [default: none].
    #[arg(long, env = "LOUPE_JUDGE_ANTHROPIC_API_KEY", value_name = "KEY", hide_env_values = true)]
    pub judge_anthropic_api_key: Option<String>,

    /// Base URL of Anthropic: the part before `/v1/messages` [default: Anthropic's].
    #[arg(long, env = "LOUPE_JUDGE_ANTHROPIC_BASE_URL", value_name = "URL")]
    pub judge_anthropic_base_url: Option<String>,

    /// Anthropic judge model of the tier `cheap` [default: claude-haiku-5-5].
    #[arg(long, env = "LOUPE_JUDGE_ANTHROPIC_CHEAP_MODEL", value_name = "MODEL")]
    pub judge_anthropic_cheap_model: Option<String>,

    /// Anthropic judge model of the tier `premium` [default: claude-sonnet-5-5].
    #[arg(long, env = "LOUPE_JUDGE_ANTHROPIC_PREMIUM_MODEL", value_name = "MODEL")]
    pub judge_anthropic_premium_model: Option<String>,

    /// Timeout of a judge in seconds; a model without a GPU may be slow [default: 60].
    #[arg(
        long,
        env = "LOUPE_JUDGE_TIMEOUT",
        value_name = "SECONDS",
        value_parser = super::values::parse_number::<u64>
    )]
    pub judge_timeout: Option<u64>,
}

/// Default and maximum timeout of a judge in seconds.
const DEFAULT_TIMEOUT_SECONDS: u64 = 60;
const MAX_TIMEOUT_SECONDS: u64 = 600;

impl JudgeSettings {
    /// Treats empty settings as unset.
    pub fn drop_empty(&mut self) {
        for setting in [
            &mut self.judge_openai_api_key,
            &mut self.judge_openai_base_url,
            &mut self.judge_openai_cheap_model,
            &mut self.judge_openai_premium_model,
            &mut self.judge_anthropic_api_key,
            &mut self.judge_anthropic_base_url,
            &mut self.judge_anthropic_cheap_model,
            &mut self.judge_anthropic_premium_model,
        ] {
            *setting = setting.take().filter(|it| !it.is_empty());
        }
    }

    /// Validates what clap cannot.
    ///
    /// # Errors
    ///
    /// Fails when a setting is invalid.
    pub fn check(&self) -> anyhow::Result<()> {
        for (name, key) in [
            ("LOUPE_JUDGE_OPENAI_API_KEY", &self.judge_openai_api_key),
            ("LOUPE_JUDGE_ANTHROPIC_API_KEY", &self.judge_anthropic_api_key),
        ] {
            let visible = key.iter().all(|it| it.bytes().all(|it| it.is_ascii_graphic()));
            ensure!(visible, "{name} must have visible ASCII characters only");
        }
        for (name, address) in [
            ("LOUPE_JUDGE_OPENAI_BASE_URL", &self.judge_openai_base_url),
            ("LOUPE_JUDGE_ANTHROPIC_BASE_URL", &self.judge_anthropic_base_url),
        ] {
            if let Some(address) = address {
                check_address(name, address)?;
            }
        }
        ensure!(
            (1..=MAX_TIMEOUT_SECONDS).contains(&self.judge_timeout.unwrap_or(DEFAULT_TIMEOUT_SECONDS)),
            "LOUPE_JUDGE_TIMEOUT must be 1 to {MAX_TIMEOUT_SECONDS} seconds"
        );
        Ok(())
    }

    /// Returns whether a provider is configured. One without a key has a base URL.
    pub fn is_set(&self, provider: Provider) -> bool {
        self.key(provider).is_some() || self.base_url(provider).is_some()
    }

    /// Returns the key.
    pub fn key(&self, provider: Provider) -> Option<&str> {
        match provider {
            Provider::OpenAi => self.judge_openai_api_key.as_deref(),
            Provider::Anthropic => self.judge_anthropic_api_key.as_deref(),
            Provider::OpenAiCompatible => None,
        }
    }

    /// Returns the base URL without a trailing slash; `None` means the provider's own.
    pub fn base_url(&self, provider: Provider) -> Option<&str> {
        let set = match provider {
            Provider::OpenAi => &self.judge_openai_base_url,
            Provider::Anthropic => &self.judge_anthropic_base_url,
            Provider::OpenAiCompatible => &None,
        };
        set.as_deref().map(|it| it.trim_end_matches('/'))
    }

    /// Returns the configured model, if any.
    pub fn configured_model(&self, provider: Provider, tier: ModelTier) -> Option<&str> {
        match (provider, tier) {
            (Provider::OpenAi, ModelTier::Cheap) => self.judge_openai_cheap_model.as_deref(),
            (Provider::OpenAi, ModelTier::Premium) => self.judge_openai_premium_model.as_deref(),
            (Provider::Anthropic, ModelTier::Cheap) => self.judge_anthropic_cheap_model.as_deref(),
            (Provider::Anthropic, ModelTier::Premium) => self.judge_anthropic_premium_model.as_deref(),
            (Provider::OpenAiCompatible, _) => None,
        }
    }

    /// Returns the model for credentials that name none; `None` for compatible services, which have no
    /// default.
    pub fn model(&self, provider: Provider, tier: ModelTier) -> Option<&str> {
        let default = match (provider, tier) {
            (Provider::OpenAi, ModelTier::Cheap) => "gpt-6-luna",
            (Provider::OpenAi, ModelTier::Premium) => "gpt-6.1-sol",
            (Provider::Anthropic, ModelTier::Cheap) => "claude-haiku-5-5",
            (Provider::Anthropic, ModelTier::Premium) => "claude-sonnet-5-5",
            (Provider::OpenAiCompatible, _) => return None,
        };
        Some(self.configured_model(provider, tier).unwrap_or(default))
    }

    /// Returns the timeout of a judge.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.judge_timeout.unwrap_or(DEFAULT_TIMEOUT_SECONDS))
    }
}

/// Validates an address that the operator sets; it may be private.
///
/// # Errors
///
/// Fails when it is not a plain `http` or `https` URL.
pub fn check_address(name: &str, address: &str) -> anyhow::Result<()> {
    let url = Url::parse(address).with_context(|| name.to_owned())?;
    let plain = matches!(url.scheme(), "http" | "https")
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    ensure!(plain, "{name} must begin with http:// or https:// and have no user, query or fragment");
    Ok(())
}

#[cfg(test)]
mod tests {
    use semantics::prices::{Overrides, PriceTable};

    use super::*;

    #[test]
    fn default_judge_models_have_a_price() {
        let settings = JudgeSettings::default();
        for provider in [Provider::OpenAi, Provider::Anthropic] {
            for tier in [ModelTier::Cheap, ModelTier::Premium] {
                let model = settings.model(provider, tier).unwrap();
                assert!(PriceTable::builtin().rate(model, &Overrides::default()).is_some(), "{model}");
            }
        }
    }

    #[test]
    fn invalid_judge_setting_is_explained() {
        let key = JudgeSettings { judge_openai_api_key: Some("a b".to_owned()), ..Default::default() };
        let address =
            JudgeSettings { judge_anthropic_base_url: Some("ftp://x".to_owned()), ..Default::default() };
        let timeout = JudgeSettings { judge_timeout: Some(0), ..Default::default() };
        for (settings, expected) in [
            (key, "LOUPE_JUDGE_OPENAI_API_KEY"),
            (address, "LOUPE_JUDGE_ANTHROPIC_BASE_URL"),
            (timeout, "LOUPE_JUDGE_TIMEOUT"),
        ] {
            assert!(settings.check().unwrap_err().to_string().contains(expected));
        }
        assert!(JudgeSettings::default().check().is_ok());
    }
}
