//! Selects the embedding provider. Pure.

use api::{Plan, credential::Provider};
use entities::provider_credential;

/// The selected provider of a tenant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProviderSelection<'a> {
    /// The tenant's own provider, with its model.
    Own(&'a provider_credential::Model, &'a str),
    /// The platform's provider.
    Platform,
    /// None: the tenant's spans are not embedded.
    NoProvider,
}

/// Selects the provider on a plan with these credentials. `platform` tells whether the platform's
/// provider is configured.
///
/// Starter has no search, so its spans are not embedded. From Team on, texts are sent only to the
/// provider that the tenant configured.
pub fn select_provider(
    plan: Plan,
    credentials: &[provider_credential::Model],
    platform: bool,
) -> ProviderSelection<'_> {
    if plan < Plan::Pro {
        return ProviderSelection::NoProvider;
    }
    let credential_of = |provider: Provider| {
        credentials.iter().find_map(|it| {
            let model = it.embedding_model.as_deref()?;
            (it.provider == provider.as_str()).then_some(ProviderSelection::Own(it, model))
        })
    };
    let own = credential_of(Provider::OpenAi).or_else(|| credential_of(Provider::OpenAiCompatible));
    let fallback = if platform && plan < Plan::Team {
        ProviderSelection::Platform
    } else {
        ProviderSelection::NoProvider
    };
    own.unwrap_or(fallback)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn credential(provider: Provider, embedding_model: Option<&str>) -> provider_credential::Model {
        provider_credential::Model {
            tenant_id: Uuid::nil(),
            provider: provider.as_str().to_owned(),
            sealed_key: Vec::new(),
            hint: String::new(),
            base_url: None,
            judge_model_cheap: None,
            judge_model_premium: None,
            embedding_model: embedding_model.map(str::to_owned),
            created_at: 0,
            updated_at: 0,
        }
    }

    fn word(plan: Plan, credentials: &[provider_credential::Model], platform: bool) -> &str {
        match select_provider(plan, credentials, platform) {
            ProviderSelection::Own(_, model) => model,
            ProviderSelection::Platform => "platform",
            ProviderSelection::NoProvider => "none",
        }
    }

    #[test]
    fn embedding_provider_is_selected_by_plan() {
        let judges = [credential(Provider::OpenAi, None)];
        let never = [credential(Provider::Anthropic, Some("claude"))];
        let own = [credential(Provider::OpenAiCompatible, Some("own"))];
        for (plan, without, with, own_key) in [
            (Plan::Starter, "none", "none", "none"),
            (Plan::Pro, "none", "platform", "own"),
            (Plan::Team, "none", "none", "own"),
            (Plan::Business, "none", "none", "own"),
            (Plan::Enterprise, "none", "none", "own"),
        ] {
            for credentials in [&[][..], &judges, &never] {
                assert_eq!(word(plan, credentials, false), without, "{plan}");
                assert_eq!(word(plan, credentials, true), with, "{plan}");
            }
            assert_eq!((word(plan, &own, false), word(plan, &own, true)), (own_key, own_key), "{plan}");
        }
        let both = [
            credential(Provider::OpenAiCompatible, Some("second")),
            credential(Provider::OpenAi, Some("first")),
        ];
        assert_eq!(word(Plan::Team, &both, false), "first");
        let half = [credential(Provider::OpenAiCompatible, Some("own")), credential(Provider::OpenAi, None)];
        assert_eq!(word(Plan::Team, &half, false), "own");
    }
}
