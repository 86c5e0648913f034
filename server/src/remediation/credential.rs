//! Selects the tenant's credential for the model of an action. Pure.

use api::credential::Provider;
use entities::provider_credential;
use serde_json::{Map, Value};

/// The names of metadata in which instrumentations record the provider.
const PROVIDER_NAMES: &[&str] =
    &["gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system", "provider"];

/// Returns the credential of the provider that serves a model, and that provider. A service that is compatible with
/// OpenAI may serve any model. `metadata` names the provider of the recorded request.
///
/// # Errors
///
/// Fails with what to do when no credential is stored for it.
pub fn select<'a>(
    credentials: &'a [provider_credential::Model],
    model: &str,
    metadata: &Map<String, Value>,
) -> Result<(&'a provider_credential::Model, Provider), String> {
    let recorded = PROVIDER_NAMES.iter().find_map(|it| metadata.get(*it)?.as_str());
    let family = provider_of(model).or_else(|| recorded.and_then(provider_of));
    let order = match family {
        Some(provider) => vec![provider, Provider::OpenAiCompatible],
        None => vec![Provider::OpenAiCompatible, Provider::OpenAi, Provider::Anthropic],
    };
    let stored = |provider: &Provider| {
        credentials.iter().find(|it| it.provider == provider.as_str()).map(|it| (it, *provider))
    };
    order.iter().find_map(stored).ok_or_else(|| {
        let wanted = family.map_or_else(|| "{provider}".to_owned(), |it| it.to_string());
        format!(
            "no credential is stored for the provider of the model {model}: an owner stores one with \
             PUT /v1/provider-credentials/{wanted} or openai_compatible"
        )
    })
}

/// Returns the provider that a name of a model or of a provider belongs to.
fn provider_of(name: &str) -> Option<Provider> {
    let name = name.to_ascii_lowercase();
    let name = name.rsplit('/').next().unwrap_or(&name);
    if name.contains("claude") || name.contains("anthropic") {
        return Some(Provider::Anthropic);
    }
    let is_openai = ["gpt-", "chatgpt", "o1", "o3", "o4", "openai"].iter().any(|it| name.starts_with(it));
    (is_openai && !name.starts_with("gpt-oss")).then_some(Provider::OpenAi)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows(providers: &[Provider]) -> Vec<provider_credential::Model> {
        let row = |provider: &Provider| provider_credential::Model {
            tenant_id: uuid::Uuid::nil(),
            provider: provider.as_str().to_owned(),
            sealed_key: Vec::new(),
            hint: String::new(),
            base_url: None,
            judge_model_cheap: None,
            judge_model_premium: None,
            embedding_model: None,
            created_at: 0,
            updated_at: 0,
        };
        providers.iter().map(row).collect()
    }

    #[test]
    fn credential_of_the_model_is_selected() {
        use Provider::{Anthropic, OpenAi, OpenAiCompatible};
        let all = rows(&[OpenAi, Anthropic, OpenAiCompatible]);
        let selected =
            |model: &str, metadata: Value| select(&all, model, metadata.as_object().unwrap()).map(|it| it.1);
        for (model, expected) in [
            ("gpt-4o", OpenAi),
            ("openai/gpt-4o", OpenAi),
            ("o3-mini", OpenAi),
            ("claude-sonnet-4-5", Anthropic),
            ("anthropic.claude-3", Anthropic),
            ("qwen3:4b", OpenAiCompatible),
            ("gpt-oss:20b", OpenAiCompatible),
        ] {
            assert_eq!(selected(model, json!({})), Ok(expected), "{model}");
        }
        assert_eq!(selected("my-deployment", json!({"gen_ai.system": "openai"})), Ok(OpenAi));
    }

    #[test]
    fn compatible_service_replaces_a_missing_provider() {
        use Provider::{Anthropic, OpenAi, OpenAiCompatible};
        let none = Map::new();
        let selected =
            |providers: &[Provider], model: &str| select(&rows(providers), model, &none).map(|it| it.1);
        assert_eq!(selected(&[Anthropic, OpenAiCompatible], "gpt-4o"), Ok(OpenAiCompatible));
        assert_eq!(selected(&[Anthropic], "mistral-large"), Ok(Anthropic));
        let missing = selected(&[Anthropic], "gpt-4o").unwrap_err();
        assert!(missing.contains("PUT /v1/provider-credentials/openai "), "{missing}");
        assert!(selected(&[], "claude-x").is_err() && selected(&[OpenAi], "claude-x").is_err());
    }
}
