//! Selects the judge: account, provider and model. Pure.

use api::{Plan, credential::Provider, eval::ModelTier};
use entities::provider_credential;
use evaluators::judge::PreferredProvider;

use crate::config::JudgeSettings;

/// A selected judge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JudgeSelection<'a> {
    /// The tenant's own provider, with this model.
    Own(&'a provider_credential::Model, Provider, &'a str),
    /// The platform's provider, with this model.
    Platform(Provider, &'a str),
}

/// Why there is no judge, with what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoJudge {
    /// From Team on, only the tenant's own provider is used, and none is stored.
    #[error(
        "no credential of a judge is stored: an owner stores one with PUT /v1/provider-credentials/openai or anthropic, or openai_compatible with judge_model_cheap or judge_model_premium"
    )]
    CredentialsMissing,
    /// Below Team, only the platform's provider is used, and none is configured.
    #[error(
        "no judge is configured: the operator of this server must set LOUPE_JUDGE_OPENAI_API_KEY or LOUPE_JUDGE_ANTHROPIC_API_KEY; evaluators of type rule need none"
    )]
    NotConfigured,
    /// The stored key cannot be decrypted: the master key that sealed it is missing.
    #[error(
        "the stored key of the judge can't be decrypted: an owner must store it again with PUT /v1/provider-credentials"
    )]
    Sealed,
}

/// Selects the judge on a plan with these credentials.
///
/// Below Team only the platform's provider is used, from Team on only the tenant's own. The evaluator's
/// preferred provider comes first, then the other, then `openai_compatible`. A credential that names an
/// embedding model but no judge model was stored for embedding, and is used last.
///
/// # Errors
///
/// Fails with the missing account.
pub fn select_judge<'a>(
    plan: Plan,
    credentials: &'a [provider_credential::Model],
    settings: &'a JudgeSettings,
    prefers: Option<PreferredProvider>,
    tier: ModelTier,
) -> Result<JudgeSelection<'a>, NoJudge> {
    let order = match prefers.unwrap_or(PreferredProvider::OpenAi) {
        PreferredProvider::OpenAi => [Provider::OpenAi, Provider::Anthropic, Provider::OpenAiCompatible],
        PreferredProvider::Anthropic => [Provider::Anthropic, Provider::OpenAi, Provider::OpenAiCompatible],
    };
    if plan < Plan::Team {
        let platform = |provider: Provider| {
            let model = settings.model(provider, tier).filter(|_| settings.is_set(provider))?;
            Some(JudgeSelection::Platform(provider, model))
        };
        return order.into_iter().find_map(platform).ok_or(NoJudge::NotConfigured);
    }
    let own = |provider: Provider, for_judging: bool| {
        let row = credentials.iter().find(|it| it.provider == provider.as_str())?;
        let is_meant = named(row, tier).is_some() || row.embedding_model.is_none();
        let model = named(row, tier).or_else(|| settings.model(provider, tier))?;
        (is_meant == for_judging).then_some(JudgeSelection::Own(row, provider, model))
    };
    let meant = order.into_iter().find_map(|it| own(it, true));
    meant.or_else(|| order.into_iter().find_map(|it| own(it, false))).ok_or(NoJudge::CredentialsMissing)
}

/// Returns the model that a credential names: of this tier, else of the other.
fn named(row: &provider_credential::Model, tier: ModelTier) -> Option<&str> {
    let (first, second) = match tier {
        ModelTier::Cheap => (&row.judge_model_cheap, &row.judge_model_premium),
        ModelTier::Premium => (&row.judge_model_premium, &row.judge_model_cheap),
    };
    first.as_deref().or(second.as_deref())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn row(provider: Provider, cheap: Option<&str>, premium: Option<&str>) -> provider_credential::Model {
        provider_credential::Model {
            tenant_id: Uuid::nil(),
            provider: provider.as_str().to_owned(),
            sealed_key: Vec::new(),
            hint: String::new(),
            base_url: None,
            judge_model_cheap: cheap.map(str::to_owned),
            judge_model_premium: premium.map(str::to_owned),
            embedding_model: None,
            created_at: 0,
            updated_at: 0,
        }
    }

    fn settings(openai: bool, anthropic: bool) -> JudgeSettings {
        JudgeSettings {
            judge_openai_api_key: openai.then(|| "k".to_owned()),
            judge_anthropic_api_key: anthropic.then(|| "k".to_owned()),
            judge_openai_cheap_model: Some("o-cheap".to_owned()),
            judge_openai_premium_model: Some("o-premium".to_owned()),
            judge_anthropic_cheap_model: Some("a-cheap".to_owned()),
            judge_anthropic_premium_model: Some("a-premium".to_owned()),
            ..JudgeSettings::default()
        }
    }

    fn word(
        plan: Plan,
        rows: &[provider_credential::Model],
        settings: &JudgeSettings,
        prefers: PreferredProvider,
        tier: ModelTier,
    ) -> String {
        match select_judge(plan, rows, settings, Some(prefers), tier) {
            Ok(JudgeSelection::Own(_, provider, model)) => format!("own {provider} {model}"),
            Ok(JudgeSelection::Platform(provider, model)) => format!("platform {provider} {model}"),
            Err(NoJudge::CredentialsMissing) => "missing".to_owned(),
            Err(NoJudge::NotConfigured) => "none".to_owned(),
            Err(NoJudge::Sealed) => "sealed".to_owned(),
        }
    }

    #[test]
    fn judge_is_selected_by_plan() {
        let rows = [row(Provider::Anthropic, Some("mine"), None)];
        for (plan, neither, platform, own, both) in [
            (Plan::Starter, "none", "platform openai o-cheap", "none", "platform openai o-cheap"),
            (Plan::Pro, "none", "platform openai o-cheap", "none", "platform openai o-cheap"),
            (Plan::Team, "missing", "missing", "own anthropic mine", "own anthropic mine"),
            (Plan::Business, "missing", "missing", "own anthropic mine", "own anthropic mine"),
            (Plan::Enterprise, "missing", "missing", "own anthropic mine", "own anthropic mine"),
        ] {
            let of =
                |rows, settings| word(plan, rows, &settings, PreferredProvider::OpenAi, ModelTier::Cheap);
            assert_eq!(of(&[], settings(false, false)), neither, "{plan}");
            assert_eq!(of(&[], settings(true, false)), platform, "{plan}");
            assert_eq!(of(&rows, settings(false, false)), own, "{plan}");
            assert_eq!(of(&rows, settings(true, true)), both, "{plan}");
        }
    }

    #[test]
    fn preferred_judge_provider_is_selected_first() {
        use ModelTier::{Cheap, Premium};
        let platform = |openai, anthropic, prefers, tier| {
            word(Plan::Pro, &[], &settings(openai, anthropic), prefers, tier)
        };
        assert_eq!(
            platform(true, true, PreferredProvider::Anthropic, Premium),
            "platform anthropic a-premium"
        );
        assert_eq!(platform(true, true, PreferredProvider::OpenAi, Premium), "platform openai o-premium");
        assert_eq!(platform(true, false, PreferredProvider::Anthropic, Cheap), "platform openai o-cheap");
        assert_eq!(platform(false, true, PreferredProvider::OpenAi, Cheap), "platform anthropic a-cheap");
        let own = |rows: &[_], prefers, tier| word(Plan::Team, rows, &settings(true, true), prefers, tier);
        let compatible = row(Provider::OpenAiCompatible, Some("c"), Some("p"));
        let all =
            [compatible.clone(), row(Provider::OpenAi, None, None), row(Provider::Anthropic, None, None)];
        assert_eq!(own(&all, PreferredProvider::Anthropic, Cheap), "own anthropic a-cheap");
        assert_eq!(own(&all, PreferredProvider::OpenAi, Premium), "own openai o-premium");
        assert_eq!(own(&all[..1], PreferredProvider::Anthropic, Premium), "own openai_compatible p");
        assert_eq!(own(&all[..2], PreferredProvider::Anthropic, Cheap), "own openai o-cheap");
    }

    #[test]
    fn unnamed_judge_model_falls_back_to_default() {
        use ModelTier::{Cheap, Premium};
        let own = |rows: &[_], tier| {
            word(Plan::Team, rows, &settings(false, false), PreferredProvider::OpenAi, tier)
        };
        // The other tier's model, before the default; a compatible service has no default.
        assert_eq!(own(&[row(Provider::OpenAi, Some("c"), None)], Premium), "own openai c");
        assert_eq!(
            own(&[row(Provider::OpenAiCompatible, None, Some("p"))], Cheap),
            "own openai_compatible p"
        );
        let mut embeds = row(Provider::OpenAiCompatible, None, None);
        embeds.embedding_model = Some("e".to_owned());
        assert_eq!(own(&[embeds], Cheap), "missing");
        // A credential stored for embedding is used last.
        let mut embeds = row(Provider::OpenAi, None, None);
        embeds.embedding_model = Some("e".to_owned());
        assert_eq!(own(&[embeds.clone()], Cheap), "own openai o-cheap");
        let rows = [embeds, row(Provider::OpenAiCompatible, Some("c"), None)];
        assert_eq!(own(&rows, Cheap), "own openai_compatible c");
    }
}
