//! Warns about settings that only the first start uses and later starts ignore.

use api::{Plan, credential::Provider};
use entities::{provider_credential, tenant};
use outbound::remedy;
use store::Db;

use crate::{
    access::{api_key::ApiKey, seal::Sealer},
    config::{EmbeddingSettings, JudgeSettings},
    first_start,
};

/// Returns a warning for each setting that the first start would have stored and that its tenant does not
/// use now.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn warnings(
    db: &Db,
    bootstrap: Option<&ApiKey>,
    embedding: &EmbeddingSettings,
    judge: &JudgeSettings,
    sealer: &Sealer,
) -> anyhow::Result<Vec<String>> {
    let mut messages = Vec::new();
    if let Some(key) = bootstrap
        && store::keys::by_hash(db.current(), &key.hash()).await?.is_none()
    {
        messages.push(
            "LOUPE_BOOTSTRAP_API_KEY is ignored: it becomes the key of the first tenant at the first start, which is \
             over; create a key with POST /v1/apikeys"
                .to_owned(),
        );
    }
    if !embedding.is_set() && ![Provider::OpenAi, Provider::Anthropic].into_iter().any(|it| judge.is_set(it))
    {
        return Ok(messages);
    }
    let Some(tenant) = store::tenants::oldest(db.current()).await? else { return Ok(messages) };
    // Only tenants of the first start have the operator's providers; below Team, no tenant has its own
    // judge.
    if !first_start::is_first_tenant(db.current(), &tenant).await?
        || tenant.plan.parse::<Plan>()? < Plan::Team
    {
        return Ok(messages);
    }
    let stored = store::credentials::all(db.current(), tenant.tenant_id).await?;
    for row in first_start::operator_credentials(tenant.tenant_id, embedding, judge, sealer, 0)? {
        if !stored.iter().any(|it| is_same(it, &row)) {
            messages.push(describe_mismatch(&tenant, &row));
        }
    }
    Ok(messages)
}

/// Returns whether a stored credential is equivalent to the configured one.
fn is_same(stored: &provider_credential::Model, configured: &provider_credential::Model) -> bool {
    let is_same_model = |stored: &Option<String>, configured: &Option<String>| {
        configured.is_none() || stored.as_deref() == configured.as_deref()
    };
    stored.provider == configured.provider
        && stored.base_url == configured.base_url
        && stored.hint == configured.hint
        && is_same_model(&stored.embedding_model, &configured.embedding_model)
        && is_same_model(&stored.judge_model_cheap, &configured.judge_model_cheap)
        && is_same_model(&stored.judge_model_premium, &configured.judge_model_premium)
}

fn describe_mismatch(tenant: &tenant::Model, configured: &provider_credential::Model) -> String {
    let settings = match (&configured.embedding_model, configured.provider.as_str()) {
        (Some(_), _) => "LOUPE_EMBEDDING_API_KEY, LOUPE_EMBEDDING_BASE_URL and LOUPE_EMBEDDING_MODEL are",
        (None, "anthropic") => "LOUPE_JUDGE_ANTHROPIC_… is",
        (None, _) => "LOUPE_JUDGE_OPENAI_… is",
    };
    let allow_list_entry = configured.base_url.as_deref().and_then(remedy::opening);
    let allow_list_entry =
        allow_list_entry.map_or_else(String::new, |it| format!(", with {it} in LOUPE_EGRESS_ALLOW_CIDRS"));
    let provider = match (&configured.base_url, configured.provider.as_str()) {
        (Some(_), "openai") => "openai_compatible",
        (_, provider) => provider,
    };
    format!(
        "{settings} not used by the tenant `{}` ({}): its credentials were stored at the first start; an owner changes \
         them with PUT /v1/provider-credentials/{provider}{allow_list_entry}",
        tenant.name, tenant.tenant_id
    )
}
