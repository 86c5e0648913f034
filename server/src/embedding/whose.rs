//! Whose key embeds. Pure.

use api::{Plan, credential::Provider};
use entities::provider_credential;

/// Whose key embeds what a tenant sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Whose<'a> {
    /// The tenant's own, with its model.
    Own(&'a provider_credential::Model, &'a str),
    /// The platform's.
    Platform,
    /// Nobody's: it is not embedded.
    Nobody,
}

/// Whose key embeds on a plan with these credentials. `platform` says whether there is a platform's.
///
/// Starter has no search, so nothing of it is embedded. From Team on nothing is sent to anybody but
/// whom the tenant chose.
pub fn whose(plan: Plan, credentials: &[provider_credential::Model], platform: bool) -> Whose<'_> {
    if plan < Plan::Pro {
        return Whose::Nobody;
    }
    let of = |provider: Provider| {
        credentials.iter().find_map(|it| {
            let model = it.embedding_model.as_deref()?;
            (it.provider == provider.as_str()).then_some(Whose::Own(it, model))
        })
    };
    let own = of(Provider::OpenAi).or_else(|| of(Provider::OpenAiCompatible));
    let otherwise = if platform && plan < Plan::Team { Whose::Platform } else { Whose::Nobody };
    own.unwrap_or(otherwise)
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
        match whose(plan, credentials, platform) {
            Whose::Own(_, model) => model,
            Whose::Platform => "platform",
            Whose::Nobody => "nobody",
        }
    }

    #[test]
    fn on_every_plan() {
        let judges = [credential(Provider::OpenAi, None)];
        let never = [credential(Provider::Anthropic, Some("claude"))];
        let own = [credential(Provider::OpenAiCompatible, Some("own"))];
        for (plan, without, with, own_key) in [
            (Plan::Starter, "nobody", "nobody", "nobody"),
            (Plan::Pro, "nobody", "platform", "own"),
            (Plan::Team, "nobody", "nobody", "own"),
            (Plan::Business, "nobody", "nobody", "own"),
            (Plan::Enterprise, "nobody", "nobody", "own"),
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
