//! Who is calling: the one place that reads tokens.

use std::sync::Arc;

use api::{ErrorCode, Plan};
use axum::http::{HeaderMap, header};

use super::outer::RequestId;
use crate::{
    access::{Caller, Credential, api_key::ApiKey, seats, session::Session},
    app::App,
    error::{Error, Result, problem},
};

/// The caller that a request's token stands for.
///
/// # Errors
/// `unauthorized` without a valid token; what [`seats::admit`] says of a session.
pub async fn identify(app: &App, headers: &HeaderMap, request_id: RequestId) -> Result<Caller> {
    let token = bearer(headers)?;
    let now = app.clock.now();
    if let Some(key) = ApiKey::parse(token) {
        let known = app.known.key(&key).await?.filter(|it| it.expires_at.is_none_or(|at| at > now));
        let Some(known) = known else {
            return Err(unauthorized("the API key is unknown, revoked or expired"));
        };
        return Ok(Caller {
            tenant_id: known.tenant_id,
            plan: known.plan,
            role: known.role,
            credential: Credential::Key {
                id: known.id,
                project_id: known.project_id,
                scopes: Arc::clone(&known.scopes),
            },
            request_id: request_id.0,
        });
    }
    match app.sessions.check(token, now).await? {
        Some(session) => of_session(app, session, request_id).await,
        None => Err(unauthorized("the token is not a valid API key or session token")),
    }
}

async fn of_session(app: &App, session: Session, request_id: RequestId) -> Result<Caller> {
    let tenant = app.known.tenant_claimed(&session.tenant).await?.ok_or_else(|| {
        problem(ErrorCode::UnknownTenant, "the token is valid, but its tenant does not exist here")
    })?;
    let caller = Caller {
        tenant_id: tenant.tenant_id,
        plan: tenant.plan.parse::<Plan>().map_err(anyhow::Error::from)?,
        role: session.role,
        credential: Credential::Session { subject: session.subject.into(), expires_at: session.expires_at },
        request_id: request_id.0,
    };
    seats::admit(app, &caller).await?;
    Ok(caller)
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

fn unauthorized(message: &str) -> Error {
    problem(ErrorCode::Unauthorized, message)
}
