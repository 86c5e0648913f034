//! Who is calling: the one place that reads tokens and compares access with the caller.

use std::sync::Arc;

use api::{ErrorCode, Plan, Role, Scope};
use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::{
    access::{Access, Caller, Credential, api_key::ApiKey},
    app::App,
    error::{Error, Result, internal, problem},
};

/// What [`guard`] needs to know.
#[derive(Clone)]
pub struct Guard {
    /// The state.
    pub app: Arc<App>,
    /// What the route asks for.
    pub access: Access,
}

/// Lets a request pass whose token may do what the route does.
pub async fn guard(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    if guard.access != Access::Open {
        let caller = match caller(&guard.app, request.headers()).await {
            Ok(caller) => caller,
            Err(error) => return error.into_response(),
        };
        if let Err(problem) = guard.access.check(&caller) {
            return Error::from(problem).into_response();
        }
        request.extensions_mut().insert(caller);
    }
    next.run(request).await
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        // Missing only if a handler asks for a caller on an open route.
        parts.extensions.get::<Self>().cloned().ok_or_else(|| internal().into())
    }
}

async fn caller(app: &App, headers: &HeaderMap) -> Result<Caller> {
    let token = bearer(headers)?;
    let now = app.clock.now();
    if let Some(key) = ApiKey::parse(token) {
        let known = app
            .key(&key)
            .await?
            .filter(|it| it.key.revoked_at.is_none() && it.key.expires_at.is_none_or(|at| at > now));
        let Some(known) = known else {
            return Err(unauthorized("the API key is unknown, revoked or expired"));
        };
        let scopes = known.key.scopes.split(',').filter(|it| !it.is_empty()).map(str::parse::<Scope>);
        return Ok(Caller {
            tenant_id: known.tenant.tenant_id,
            plan: plan(&known.tenant)?,
            role: known.key.role.parse::<Role>().map_err(anyhow::Error::from)?,
            credential: Credential::Key {
                id: known.key.id,
                project_id: known.key.project_id,
                scopes: scopes.collect::<Result<_, _>>().map_err(anyhow::Error::from)?,
            },
        });
    }
    let session = app
        .sessions
        .check(token, now)
        .await?
        .ok_or_else(|| unauthorized("the token is not a valid API key or session token"))?;
    let tenant = match session.tenant.parse() {
        Ok(id) => app.tenant(id).await?,
        Err(_) => None,
    };
    let tenant = tenant.ok_or_else(|| {
        problem(ErrorCode::UnknownTenant, "the token is valid, but its tenant does not exist here")
    })?;
    Ok(Caller {
        tenant_id: tenant.tenant_id,
        plan: plan(&tenant)?,
        role: session.role,
        credential: Credential::Session { subject: session.subject, expires_at: session.expires_at },
    })
}

/// The token of the one `Authorization: Bearer` header.
fn bearer(headers: &HeaderMap) -> Result<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(unauthorized("send exactly one header `Authorization: Bearer <token>`"));
    };
    let malformed = || unauthorized("the Authorization header must read `Bearer <token>`");
    let text = value.to_str().map_err(|_| malformed())?;
    let (scheme, token) = text.split_once(' ').ok_or_else(malformed)?;
    let token = token.trim_matches(' ');
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() || token.contains(char::is_whitespace) {
        return Err(malformed());
    }
    Ok(token)
}

fn plan(tenant: &entities::tenant::Model) -> Result<Plan> {
    Ok(tenant.plan.parse::<Plan>().map_err(anyhow::Error::from)?)
}

fn unauthorized(message: &str) -> Error {
    problem(ErrorCode::Unauthorized, message)
}
