//! Handlers of provider credentials, which are stored sealed and never returned.

use std::sync::Arc;

use api::{
    ErrorCode, Plan, Timestamp,
    credential::{NewProviderCredential, Provider, ProviderCredential, ProviderCredentialList},
};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use entities::provider_credential;
use outbound::remedy;
use serde_json::json;
use store::{credentials::last4, sealed::PROVIDER_KEY};

use crate::{
    access::{Access, Caller},
    app::App,
    audit::{self, AuditAction, AuditEvent},
    cursor::NamePosition,
    error::{Error, Problem, Result, not_found},
    http::{
        query::Query,
        read::{self, ApiJson},
        route::{Route, route},
    },
    span_embedding::backfill::Backfill,
};

/// A provider's credential was stored.
const CREDENTIAL_SET: AuditAction = AuditAction::new("provider_credential.set", "provider_credential");
/// A provider's credential was deleted.
const CREDENTIAL_DELETE: AuditAction = AuditAction::new("provider_credential.delete", "provider_credential");

/// Maximum length of a key in characters.
const MAX_KEY_CHARS: usize = 1_000;
/// Maximum length of a model's name in characters.
const MAX_MODEL_CHARS: usize = 200;

/// Returns the routes of provider credentials.
pub fn routes() -> Vec<Route> {
    vec![
        route!(list, Access::owner().plan(Plan::Pro)),
        route!(set, Access::owner().plan(Plan::Pro))
            .audited(CREDENTIAL_SET)
            .plan_of_body(plan_of_body)
            .errors(&[ErrorCode::NotFound]),
        // On every plan, so that credentials can be deleted after a downgrade.
        route!(delete, Access::owner()).audited(CREDENTIAL_DELETE).errors(&[ErrorCode::NotFound]),
    ]
}

/// List provider credentials, without their keys.
#[utoipa::path(get, path = "/v1/provider-credentials", tag = "Provider credentials", params(
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = ProviderCredentialList)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Query,
) -> Result<Json<ProviderCredentialList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let scope = "provider_credentials";
    let after: Option<NamePosition> =
        query.get("cursor").map(|it| app.cursors.verify(tenant, scope, it)).transpose()?;
    // One credential per provider, so the list never exceeds a page.
    let mut rows = store::credentials::all(&app.db.read, tenant).await?;
    rows.retain(|it| after.as_ref().is_none_or(|NamePosition(name)| it.provider > *name));
    let next_cursor =
        app.cursors.page(tenant, scope, &mut rows, limit, |it| NamePosition(it.provider.clone()));
    let provider_credentials = rows.into_iter().map(to_wire).collect::<Result<_>>()?;
    let has_more = next_cursor.is_some();
    Ok(Json(ProviderCredentialList { provider_credentials, has_more, next_cursor }))
}

/// Store a provider credential.
///
/// `api_key` may be omitted to keep the stored key, unless `base_url` changes: a key is never sent to
/// another address. With `embedding_model`, the newest spans without a vector are embedded in the
/// background, and all new ones. On the plan Pro, credentials are for embedding only.
#[utoipa::path(put, path = "/v1/provider-credentials/{provider}", tag = "Provider credentials",
    request_body = NewProviderCredential,
    params(("provider" = Provider, Path, description = "openai, anthropic or openai_compatible")),
    responses((status = 200, body = ProviderCredential)))]
pub async fn set(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(provider): Path<String>,
    ApiJson(body): ApiJson<NewProviderCredential>,
) -> Result<Json<ProviderCredential>> {
    let provider = parse_provider(&provider)?;
    let body = trimmed(body);
    let required_plan = lowest_plan(&body);
    if caller.plan < required_plan {
        return Err(Problem::plan_too_low(required_plan, caller.plan).into());
    }
    check(&body)?;
    let (tenant, now) = (caller.tenant_id, app.clock.now());
    let credentials = app.access_cache.credentials(tenant).await?;
    let stored = credentials.iter().find(|it| it.provider == provider.as_str());
    let stored = stored.and_then(|it| it.base_url.as_deref());
    let base_url = base_url(&app, provider, body.base_url.as_deref(), stored).await?;

    let txn = app.db.begin().await?;
    let was = store::credentials::lock(&txn, tenant, provider).await?;
    let (sealed_key, hint) = match (&body.api_key, &was) {
        (Some(key), _) => {
            (app.sealer.seal(PROVIDER_KEY.location(tenant, provider.as_str()), key)?, last4(key))
        }
        (None, Some(was)) if was.base_url == base_url => (was.sealed_key.clone(), was.hint.clone()),
        (None, Some(_)) => {
            return Err(Problem::field("api_key", "is required when base_url changes").into());
        }
        (None, None) => return Err(Problem::field("api_key", "is required for a new credential").into()),
    };
    let row = provider_credential::Model {
        tenant_id: tenant,
        provider: provider.as_str().to_owned(),
        sealed_key,
        hint,
        base_url,
        judge_model_cheap: body.judge_model_cheap,
        judge_model_premium: body.judge_model_premium,
        embedding_model: body.embedding_model,
        created_at: was.map_or(now, |it| it.created_at),
        updated_at: now,
    };
    store::credentials::set(&txn, row.clone()).await?;
    // Paused rules resume and use the new credential.
    store::eval_rules::resume_all(&txn, tenant).await?;
    if row.embedding_model.is_some() {
        queue::enqueue(&txn, tenant, &Backfill {}, now, now).await?;
    }
    let detail = json!({"base_url": row.base_url, "api_key": body.api_key.is_some()});
    audit::record(&txn, &caller, AuditEvent::of(CREDENTIAL_SET).on(provider).with(detail), now).await?;
    app.commit(txn).await?;
    Ok(Json(to_wire(row)?))
}

/// Delete a provider credential.
#[utoipa::path(delete, path = "/v1/provider-credentials/{provider}", tag = "Provider credentials",
    params(("provider" = Provider, Path, description = "openai, anthropic or openai_compatible")),
    responses((status = 204)))]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(provider): Path<String>,
) -> Result<StatusCode> {
    let provider = parse_provider(&provider)?;
    let txn = app.db.begin().await?;
    if !store::credentials::delete(&txn, caller.tenant_id, provider).await? {
        return Err(not_found("credential"));
    }
    // Another judge may be used now, so paused rules resume.
    store::eval_rules::resume_all(&txn, caller.tenant_id).await?;
    let event = AuditEvent::of(CREDENTIAL_DELETE).on(provider);
    audit::record(&txn, &caller, event, app.clock.now()).await?;
    app.commit(txn).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn parse_provider(provider: &str) -> Result<Provider> {
    provider.parse().map_err(|_| not_found("provider"))
}

/// Trims the texts of the body. An empty text counts as absent.
fn trimmed(body: NewProviderCredential) -> NewProviderCredential {
    let value = |it: Option<String>| it.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    NewProviderCredential {
        api_key: value(body.api_key),
        base_url: value(body.base_url),
        judge_model_cheap: value(body.judge_model_cheap),
        judge_model_premium: value(body.judge_model_premium),
        embedding_model: value(body.embedding_model),
    }
}

/// Validates the keys and model names.
fn check(body: &NewProviderCredential) -> Result<()> {
    if let Some(key) = &body.api_key
        && (key.len() > MAX_KEY_CHARS || !key.bytes().all(|it| it.is_ascii_graphic()))
    {
        let message = format!("must have at most {MAX_KEY_CHARS} visible ASCII characters");
        return Err(Problem::field("api_key", message).into());
    }
    for (field, model) in [
        ("judge_model_cheap", &body.judge_model_cheap),
        ("judge_model_premium", &body.judge_model_premium),
        ("embedding_model", &body.embedding_model),
    ] {
        let is_invalid =
            |it: &String| it.chars().nth(MAX_MODEL_CHARS).is_some() || it.chars().any(char::is_control);
        if model.as_ref().is_some_and(is_invalid) {
            let message = format!("must have at most {MAX_MODEL_CHARS} characters and no control characters");
            return Err(Problem::field(field, message).into());
        }
    }
    Ok(())
}

/// Returns the lowest plan that allows storing this credential: Pro allows embedding only.
fn lowest_plan(body: &NewProviderCredential) -> Plan {
    let judges = body.judge_model_cheap.is_some() || body.judge_model_premium.is_some();
    if body.embedding_model.is_some() && !judges { Plan::Pro } else { Plan::Team }
}

/// Like [`lowest_plan`] for an unparsed body; for an invalid one, the lowest plan that allows any
/// credential.
pub fn plan_of_body(bytes: &[u8]) -> Plan {
    read::parse(bytes).map_or(Plan::Pro, |body| lowest_plan(&trimmed(body)))
}

/// Returns the address to store. A `stored` address is kept even if tenants could not set it: the first
/// start stores the operator's.
async fn base_url(
    app: &App,
    provider: Provider,
    value: Option<&str>,
    stored: Option<&str>,
) -> Result<Option<String>> {
    let Some(value) = value else {
        return match provider {
            Provider::OpenAiCompatible => {
                Err(Problem::missing("base_url", "required, because this provider has no public address")
                    .into())
            }
            Provider::OpenAi | Provider::Anthropic => Ok(None),
        };
    };
    if stored.is_some_and(|it| it == value.trim_end_matches('/')) {
        return Ok(stored.map(str::to_owned));
    }
    let rejected = |it| Problem::field("base_url", remedy::describe(it, value));
    let url = app.outbound.check(value).await.map_err(rejected)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(Problem::field("base_url", "must have no query and no fragment").into());
    }
    Ok(Some(url.as_str().trim_end_matches('/').to_owned()))
}

fn to_wire(row: provider_credential::Model) -> Result<ProviderCredential> {
    let provider_credential::Model {
        tenant_id: _,
        provider,
        sealed_key: _,
        hint,
        base_url,
        judge_model_cheap,
        judge_model_premium,
        embedding_model,
        created_at,
        updated_at,
    } = row;
    Ok(ProviderCredential {
        provider: provider
            .parse()
            .map_err(|it: api::enums::UnknownWord| Error::from(anyhow::Error::from(it)))?,
        api_key_last4: hint,
        base_url,
        judge_model_cheap,
        judge_model_premium,
        embedding_model,
        created_at: Timestamp::from_micros(created_at),
        updated_at: Timestamp::from_micros(updated_at),
    })
}
