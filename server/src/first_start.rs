//! The first start: an empty database gets a tenant, a project and a key, which is printed once.

use std::path::PathBuf;

use anyhow::Context;
use api::{FailureType, Plan, Role, credential::Provider, eval::ModelTier};
use entities::{api_key, failure_rule, project, provider_credential, tenant};
use store::{Connection, Db, DbError, credentials::last4, new_id, sealed::PROVIDER_KEY};
use uuid::Uuid;

use crate::{
    access::{
        api_key::ApiKey,
        seal::Sealer,
        session::{Claims, Sessions},
    },
    config::{self, EmbeddingSettings, JudgeSettings},
    failures::rule_set::bits_of,
    providers::OPENAI,
};

/// A new tenant, with its project and key.
pub struct NewTenant {
    /// The tenant.
    pub tenant_id: Uuid,
    /// The tenant's first project.
    pub project_id: Uuid,
    /// The row of the tenant's first key.
    pub key: api_key::Model,
    /// The secret of the key.
    pub secret: ApiKey,
}

/// The setting that marks an installation whose first start is complete, even if its tenants are
/// deleted.
const FIRST_START_SETTING: &str = "first_start";

/// Creates the tenant `default` if this is the first start on an empty database, with `key` if given;
/// `None` if it is not the first. The operator's providers for embedding and judging become the
/// tenant's own, because the tenant's plan does not use the platform's.
///
/// # Errors
///
/// Fails when the database fails, or there is no randomness.
pub async fn run(
    db: &Db,
    key: Option<ApiKey>,
    embedding: &EmbeddingSettings,
    judge: &JudgeSettings,
    sealer: &Sealer,
    now: i64,
) -> anyhow::Result<Option<NewTenant>> {
    let txn = db.begin().await?;
    if store::settings::get(&txn, FIRST_START_SETTING).await?.is_some() || !store::tenants::none(&txn).await?
    {
        txn.rollback().await?;
        return Ok(None);
    }
    // Of two processes that start at the same time, the second waits and fails here, and finds the
    // tenant created. First, because both may insert the same key.
    if let Err(error) = store::settings::add(&txn, FIRST_START_SETTING, &now.to_string()).await {
        return if store::is_duplicate(&error) { Ok(None) } else { Err(error.into()) };
    }
    let created = create_tenant(&txn, "default", Plan::Enterprise, None, key, now).await?;
    for row in operator_credentials(created.tenant_id, embedding, judge, sealer, now)? {
        store::credentials::set(&txn, row).await?;
    }
    txn.commit().await?;
    Ok(Some(created))
}

/// Returns whether the first start created this tenant.
///
/// # Errors
///
/// Fails when the database fails.
pub async fn is_first_tenant(db: &impl Connection, tenant: &tenant::Model) -> Result<bool, DbError> {
    Ok(store::settings::get(db, FIRST_START_SETTING)
        .await?
        .is_some_and(|at| at == tenant.created_at.to_string()))
}

/// Returns the operator's providers as credentials of this tenant, one per provider.
///
/// # Errors
///
/// Fails when a key cannot be sealed.
pub fn operator_credentials(
    tenant_id: Uuid,
    embedding: &EmbeddingSettings,
    judge: &JudgeSettings,
    sealer: &Sealer,
    now: i64,
) -> anyhow::Result<Vec<provider_credential::Model>> {
    let row = |provider: Provider, key: Option<&str>, base_url: Option<&str>| {
        let key = key.unwrap_or_default();
        anyhow::Ok(provider_credential::Model {
            tenant_id,
            provider: provider.as_str().to_owned(),
            sealed_key: sealer.seal(PROVIDER_KEY.location(tenant_id, provider.as_str()), key)?,
            hint: last4(key),
            base_url: base_url.map(str::to_owned),
            judge_model_cheap: None,
            judge_model_premium: None,
            embedding_model: None,
            created_at: now,
            updated_at: now,
        })
    };
    let mut rows = Vec::new();
    for provider in [Provider::OpenAi, Provider::Anthropic].into_iter().filter(|it| judge.is_set(*it)) {
        let model = |tier| judge.configured_model(provider, tier).map(str::to_owned);
        rows.push(provider_credential::Model {
            judge_model_cheap: model(ModelTier::Cheap),
            judge_model_premium: model(ModelTier::Premium),
            ..row(provider, judge.key(provider), judge.base_url(provider))?
        });
    }
    if embedding.is_set() {
        let (key, base_url) = (embedding.embedding_api_key.as_deref(), embedding.base_url());
        let model = Some(embedding.model().to_owned());
        let judges = judge.is_set(Provider::OpenAi);
        let is_same = (key, base_url) == (judge.key(Provider::OpenAi), judge.base_url(Provider::OpenAi));
        match rows.first_mut() {
            Some(shared) if judges && is_same => shared.embedding_model = model,
            // Another key is stored for this provider already, so this one is stored as OpenAI-compatible.
            _ => {
                let (provider, base_url) = match base_url {
                    None if judges => (Provider::OpenAiCompatible, Some(OPENAI)),
                    None => (Provider::OpenAi, None),
                    Some(_) => (Provider::OpenAiCompatible, base_url),
                };
                rows.push(provider_credential::Model {
                    embedding_model: model,
                    ..row(provider, key, base_url)?
                });
            }
        }
    }
    Ok(rows)
}

/// Creates a tenant with the project `default` and a full-access key with the role owner.
///
/// # Errors
///
/// Fails when the database fails or the system has no randomness.
pub async fn create_tenant(
    txn: &impl Connection,
    name: &str,
    plan: Plan,
    external_id: Option<String>,
    key: Option<ApiKey>,
    now: i64,
) -> Result<NewTenant, DbError> {
    let secret = match key {
        Some(key) => key,
        None => ApiKey::generate().map_err(|it| DbError::Custom(format!("no randomness: {it}")))?,
    };
    let (tenant_id, project_id) = (new_id(), new_id());
    let row = tenant::Model {
        tenant_id,
        name: name.to_owned(),
        external_id,
        plan: plan.as_str().to_owned(),
        created_at: now,
    };
    store::tenants::add(txn, row).await?;
    let row = project::Model {
        tenant_id,
        id: project_id,
        name: "default".to_owned(),
        prompt_autoship_enabled: false,
        retention_days: None,
        archived_at: None,
        created_at: now,
        updated_at: now,
        created_by_ingest: false,
        redaction: None,
    };
    store::projects::add(txn, row).await?;
    let key = api_key::Model {
        id: new_id(),
        tenant_id,
        project_id,
        hash: secret.hash().to_vec(),
        name: "first key".to_owned(),
        prefix: secret.prefix().to_owned(),
        scopes: String::new(),
        role: Role::Owner.as_str().to_owned(),
        created_at: now,
        expires_at: None,
        revoked_at: None,
    };
    store::keys::add(txn, key.clone()).await?;
    store::failure_rules::add(txn, default_rule(tenant_id, now)).await?;
    Ok(NewTenant { tenant_id, project_id, key, secret })
}

/// Returns the failure rule that every tenant has at first: any failure of the four types.
fn default_rule(tenant_id: Uuid, now: i64) -> failure_rule::Model {
    failure_rule::Model {
        tenant_id,
        id: new_id(),
        name: "Any failure".to_owned(),
        enabled: true,
        project_id: None,
        failure_types: bits_of(FailureType::FILTERABLE_TYPES),
        metric_name: None,
        max_score: None,
        filter: "{}".to_owned(),
        min_count: 1,
        window_minutes: 60,
        created_at: now,
        updated_at: now,
        last_fired_at: None,
    }
}

/// Writes the context `local` into the configuration of the command line, with a session if the local
/// issuer is enabled; returns the folder.
///
/// # Errors
///
/// Fails when the folder is unknown or cannot be written, or the session cannot be signed.
pub fn write_profile(
    created: &NewTenant,
    sessions: &Sessions,
    base_url: &str,
    now: i64,
) -> anyhow::Result<PathBuf> {
    let folder =
        config::profile_folder().context("no folder for the profile: set LOUPE_CONFIG_DIR or HOME")?;
    let token = sessions.can_issue().then(|| sessions.issue(&owner_claims(created, now))).transpose()?;
    api::profile::write_context(&folder, "local", base_url, Some(created.secret.reveal()), token.as_deref())?;
    Ok(folder)
}

/// Returns the claims of a session of 30 days for the operator.
fn owner_claims(created: &NewTenant, now: i64) -> Claims {
    Claims {
        sub: "local-owner".to_owned(),
        tenant_id: created.tenant_id.to_string(),
        role: Role::Owner.as_str().to_owned(),
        exp: now / 1_000_000 + 30 * 86_400,
        nbf: None,
    }
}

/// Builds the lines that are printed once, ready to be pasted. They fit on a terminal of 80 columns and 24
/// rows. They explain the login only where the local issuer supports it.
pub fn welcome_text(created: &NewTenant, sessions: &Sessions, base_url: &str) -> String {
    let (tenant, key) = (created.tenant_id, created.secret.reveal());
    let session = match sessions.can_issue() {
        true => format!(
            "A session token, to create keys and to archive projects:\n\
             \x20   loupe-server admin issue-token --role owner \\\n\
             \x20     --tenant {tenant}\n"
        ),
        false => format!(
            "Sessions come from your identity provider. To reach this tenant, their tenant claim must be\n\
             \x20   {tenant}\n"
        ),
    };
    format!(
        "First start. The API key of the tenant `default`, shown only this once:\n\
         \x20   {key}\n\n\
         Send traces from any OpenTelemetry SDK:\n\
         \x20   export OTEL_EXPORTER_OTLP_ENDPOINT={base_url}\n\
         \x20   export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n\
         \x20   export OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20{key}\n\n\
         Send one with curl, and look at it:\n\
         \x20   export LOUPE_URL={base_url}\n\
         \x20   export LOUPE_API_KEY={key}\n\
         \x20   curl $LOUPE_URL/v1/ingest -H \"Authorization: Bearer $LOUPE_API_KEY\" \\\n\
         \x20     -H 'Content-Type: application/json' \\\n\
         \x20     -d '{{\"name\":\"hello\",\"input\":\"Hi!\",\"output\":\"Hello.\",\"model\":\"gpt-4o\"}}'\n\
         \x20   loupe traces tail\n\
         \x20   loupe console\n\n\
         {session}"
    )
}
