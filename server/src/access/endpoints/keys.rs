//! Handlers of API keys. Only the response of [`create`] contains the secret.

use std::sync::Arc;

use api::{
    ErrorCode, Scope, Timestamp,
    key::{ApiKey as WireKey, ApiKeyList, NewApiKey},
};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use entities::api_key;
use serde_json::json;
use store::new_id;
use uuid::Uuid;

use crate::{
    access::{Access, Caller, Credential, Keys, api_key::ApiKey},
    app::App,
    audit::{self, AuditAction, AuditEvent},
    error::{Problem, Result, not_found, problem},
    http::{
        query::{Query, path_id},
        read::ApiJson,
        route::{Route, route},
    },
};

/// An API key was created.
const KEY_CREATE: AuditAction = AuditAction::new("api_key.create", "api_key");
/// An API key was revoked.
const KEY_REVOKE: AuditAction = AuditAction::new("api_key.revoke", "api_key");

/// Maximum length of a name in characters.
const MAX_NAME_CHARS: usize = 200;

/// Returns the routes of API keys.
pub fn routes() -> Vec<Route> {
    vec![
        route!(list, Access::member()),
        route!(create, Access::member())
            .audited(KEY_CREATE)
            .errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
        route!(current, Access::viewer().keys(Keys::Any)).errors(&[ErrorCode::NotFound]),
        route!(revoke, Access::member()).audited(KEY_REVOKE),
    ]
}

/// List API keys that are not revoked, newest first.
#[utoipa::path(get, path = "/v1/apikeys", tag = "API keys", params(
    ("cursor" = Option<String>, Query, description = "from a previous `next_cursor`"),
    ("limit" = Option<u32>, Query, description = "1 to 200, default 50")),
    responses((status = 200, body = ApiKeyList)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<Json<ApiKeyList>> {
    let (tenant, limit) = (caller.tenant_id, query.limit()?);
    let after = query.get("cursor").map(|it| app.cursors.verify(tenant, "apikeys", it)).transpose()?;
    let mut rows = store::keys::page(&app.db.read, tenant, after, limit as u64 + 1).await?;
    let next_cursor = app.cursors.page(tenant, "apikeys", &mut rows, limit, |it| (it.created_at, it.id));
    let apikeys = rows.into_iter().map(|it| to_wire(it, None)).collect::<Result<_>>()?;
    Ok(Json(ApiKeyList { apikeys, has_more: next_cursor.is_some(), next_cursor }))
}

/// Create an API key with the role of the session that creates it.
#[utoipa::path(post, path = "/v1/apikeys", tag = "API keys", request_body = NewApiKey,
    responses((status = 201, description = "the key, with its `secret`, which is shown only once", body = WireKey)))]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    ApiJson(body): ApiJson<NewApiKey>,
) -> Result<(StatusCode, Json<WireKey>)> {
    let now = app.clock.now();
    let name = body.name.replace('\0', "\u{fffd}");
    if name.trim().is_empty() || name.chars().nth(MAX_NAME_CHARS).is_some() {
        return Err(Problem::field("name", format!("must have 1 to {MAX_NAME_CHARS} characters")).into());
    }
    let mut scopes = Vec::new();
    for word in body.scopes.unwrap_or_default() {
        let scope = word.parse::<Scope>().map_err(|it| Problem::field("scopes", it.to_string()))?;
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    if body.expires_at.is_some_and(|it| it.micros() <= now) {
        return Err(Problem::field("expires_at", "must be in the future").into());
    }
    let project = match body.project_id {
        Some(id) => store::projects::get(app.db.current(), caller.tenant_id, id).await?,
        None => store::projects::oldest_active(app.db.current(), caller.tenant_id).await?,
    };
    let project = project.ok_or_else(|| not_found("project"))?;
    let key = ApiKey::generate().map_err(|it| anyhow::anyhow!("no randomness: {it}"))?;
    let row = api_key::Model {
        id: new_id(),
        tenant_id: caller.tenant_id,
        project_id: project.id,
        hash: key.hash().to_vec(),
        name,
        prefix: key.prefix().to_owned(),
        scopes: scopes.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(","),
        role: caller.role.as_str().to_owned(),
        created_at: now,
        expires_at: body.expires_at.map(Timestamp::micros),
        revoked_at: None,
    };
    let detail =
        json!({"name": row.name, "prefix": row.prefix, "scopes": scopes, "project_id": row.project_id});
    let txn = app.db.begin().await?;
    store::keys::add(&txn, row.clone()).await?;
    audit::record(&txn, &caller, AuditEvent::of(KEY_CREATE).on(row.id).with(detail), now).await?;
    app.commit(txn).await?;
    Ok((StatusCode::CREATED, Json(to_wire(row, Some(key.reveal().to_owned()))?)))
}

/// Revoke an API key. It becomes invalid immediately in this process and within a second in others.
#[utoipa::path(delete, path = "/v1/apikeys/{id}", tag = "API keys", params(("id" = Uuid, Path, description = "id of the key")),
    responses((status = 204)))]
pub async fn revoke(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    let id = path_id(&id)?;
    let now = app.clock.now();
    let txn = app.db.begin().await?;
    if !store::keys::revoke(&txn, caller.tenant_id, id, now).await? {
        return Err(not_found("API key"));
    }
    audit::record(&txn, &caller, AuditEvent::of(KEY_REVOKE).on(id), now).await?;
    app.commit(txn).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Show the API key of this request.
#[utoipa::path(get, path = "/v1/apikeys/current", tag = "API keys", responses((status = 200, body = WireKey)))]
pub async fn current(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<WireKey>> {
    let Credential::Key { id, .. } = caller.credential else {
        return Err(not_found("API key: this request was sent with a session token"));
    };
    of_caller(&app, caller.tenant_id, id).await.map(Json)
}

/// Returns the API key of a caller.
///
/// # Errors
///
/// Fails with `unauthorized` when it was revoked in the meantime.
pub async fn of_caller(app: &App, tenant: Uuid, id: Uuid) -> Result<WireKey> {
    let row = store::keys::get(app.db.current(), tenant, id).await?;
    to_wire(row.ok_or_else(|| problem(ErrorCode::Unauthorized, "the API key was revoked"))?, None)
}

/// Converts a key to its wire type.
pub fn to_wire(row: api_key::Model, secret: Option<String>) -> Result<WireKey> {
    let api_key::Model {
        id,
        tenant_id: _,
        project_id,
        hash: _,
        name,
        prefix,
        scopes,
        role: _,
        created_at,
        expires_at,
        revoked_at: _,
    } = row;
    let scopes = scopes.split(',').filter(|it| !it.is_empty()).map(str::parse::<Scope>);
    Ok(WireKey {
        id,
        name,
        prefix,
        scopes: scopes.collect::<Result<_, _>>().map_err(anyhow::Error::from)?,
        project_id,
        created_at: Timestamp::from_micros(created_at),
        expires_at: expires_at.map(Timestamp::from_micros),
        secret,
    })
}
