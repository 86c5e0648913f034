//! Credentials of providers: stored sealed, never answered.

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
use serde_json::json;

use super::read::ApiJson;
use crate::{
    access::Caller,
    app::App,
    audit::{self, Action, Event},
    embedding::backfill::Backfill,
    error::{Error, Problem, Result, not_found},
    queue,
    store::{self, credentials::last4, sealed::PROVIDER_KEY},
};

/// Characters of a key.
const MAX_KEY: usize = 1_000;
/// Characters of a model's name.
const MAX_MODEL: usize = 200;

/// List the credentials, without their keys.
#[utoipa::path(get, path = "/v1/provider-credentials", tag = "Provider credentials",
    responses((status = 200, body = ProviderCredentialList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<ProviderCredentialList>> {
    let rows = store::credentials::all(&app.db.read, caller.tenant_id).await?;
    let provider_credentials = rows.into_iter().map(wire).collect::<Result<_>>()?;
    Ok(Json(ProviderCredentialList { provider_credentials, has_more: false, next_cursor: None }))
}

/// Store a credential.
///
/// `api_key` may be left out to keep the one that is stored, unless `base_url` changes: a key is
/// sent only where it was meant to go. With `embedding_model` the newest spans that have no vector
/// are embedded in the background, and all that come. On the plan Pro a credential is for embedding alone.
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
    let provider = known(&provider)?;
    let body = checked(body)?;
    refuse_judging_on_pro(&caller, &body)?;
    let (tenant, now) = (caller.tenant_id, app.clock.now());
    let known = app.known.credentials(tenant).await?;
    let stored = known.iter().find(|it| it.provider == provider.as_str());
    let stored = stored.and_then(|it| it.base_url.as_deref());
    let base_url = base_url(&app, provider, body.base_url.as_deref(), stored).await?;

    let txn = app.db.begin().await?;
    let was = store::credentials::lock(&txn, tenant, provider).await?;
    let (sealed_key, hint) = match (&body.api_key, &was) {
        (Some(key), _) => (app.sealer.seal(PROVIDER_KEY.place(tenant, provider.as_str()), key)?, last4(key)),
        (None, Some(was)) if was.base_url == base_url => (was.sealed_key.clone(), was.hint.clone()),
        (None, Some(_)) => {
            return Err(Problem::field("api_key", "must be given again when base_url changes").into());
        }
        (None, None) => return Err(Problem::field("api_key", "is needed the first time").into()),
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
    // Rules that a judge could not work for try again with what is there now.
    store::eval_rules::resume_all(&txn, tenant).await?;
    if row.embedding_model.is_some() {
        queue::enqueue(&txn, tenant, &Backfill {}, now, now).await?;
    }
    let detail = json!({"base_url": row.base_url, "api_key": body.api_key.is_some()});
    audit::record(&txn, &caller, Event::of(Action::CredentialSet).on(provider).with(detail), now).await?;
    app.commit(txn).await?;
    Ok(Json(wire(row)?))
}

/// Delete a credential.
#[utoipa::path(delete, path = "/v1/provider-credentials/{provider}", tag = "Provider credentials",
    params(("provider" = Provider, Path, description = "openai, anthropic or openai_compatible")),
    responses((status = 204)))]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(provider): Path<String>,
) -> Result<StatusCode> {
    let provider = known(&provider)?;
    let txn = app.db.begin().await?;
    if !store::credentials::delete(&txn, caller.tenant_id, provider).await? {
        return Err(not_found("credential"));
    }
    // Another one may judge now, and whether it can is not known yet.
    store::eval_rules::resume_all(&txn, caller.tenant_id).await?;
    let event = Event::of(Action::CredentialDelete).on(provider);
    audit::record(&txn, &caller, event, app.clock.now()).await?;
    app.commit(txn).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn known(provider: &str) -> Result<Provider> {
    provider.parse().map_err(|_| not_found("provider"))
}

/// Values that can be used, an empty text counting as absent.
fn checked(body: NewProviderCredential) -> Result<NewProviderCredential> {
    let given = |it: Option<String>| it.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    let body = NewProviderCredential {
        api_key: given(body.api_key),
        base_url: given(body.base_url),
        judge_model_cheap: given(body.judge_model_cheap),
        judge_model_premium: given(body.judge_model_premium),
        embedding_model: given(body.embedding_model),
    };
    if let Some(key) = &body.api_key
        && (key.len() > MAX_KEY || !key.bytes().all(|it| it.is_ascii_graphic()))
    {
        let message = format!("must have at most {MAX_KEY} visible ASCII characters");
        return Err(Problem::field("api_key", message).into());
    }
    for (field, model) in [
        ("judge_model_cheap", &body.judge_model_cheap),
        ("judge_model_premium", &body.judge_model_premium),
        ("embedding_model", &body.embedding_model),
    ] {
        let bad = |it: &String| it.chars().nth(MAX_MODEL).is_some() || it.chars().any(char::is_control);
        if model.as_ref().is_some_and(bad) {
            let message = format!("must have at most {MAX_MODEL} characters and no control characters");
            return Err(Problem::field(field, message).into());
        }
    }
    Ok(body)
}

/// Judging with one's own credential begins with Team.
fn refuse_judging_on_pro(caller: &Caller, body: &NewProviderCredential) -> Result<()> {
    let judges = body.judge_model_cheap.is_some() || body.judge_model_premium.is_some();
    if caller.plan >= Plan::Team || (body.embedding_model.is_some() && !judges) {
        return Ok(());
    }
    let mut problem = Problem::new(
        ErrorCode::PlanUpgradeRequired,
        format!(
            "on the {} plan a credential is for embedding alone: give embedding_model and no judge models, or move to team",
            caller.plan
        ),
    );
    problem.required_plan = Some(Plan::Team);
    Err(problem.into())
}

/// The address to store. One that is `stored` already stays, though it may be one that no tenant
/// could choose: the first start takes the operator's.
async fn base_url(
    app: &App,
    provider: Provider,
    given: Option<&str>,
    stored: Option<&str>,
) -> Result<Option<String>> {
    let Some(given) = given else {
        return match provider {
            Provider::OpenAiCompatible => {
                Err(Problem::field("base_url", "is needed: there is no public address for this provider")
                    .into())
            }
            Provider::OpenAi | Provider::Anthropic => Ok(None),
        };
    };
    if stored.is_some_and(|it| it == given.trim_end_matches('/')) {
        return Ok(stored.map(str::to_owned));
    }
    let url = app.egress.check(given).await.map_err(|it| Problem::field("base_url", it.to_string()))?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(Problem::field("base_url", "must have no query and no fragment").into());
    }
    Ok(Some(url.as_str().trim_end_matches('/').to_owned()))
}

fn wire(row: provider_credential::Model) -> Result<ProviderCredential> {
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
