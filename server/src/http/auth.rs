//! Authentication: determines the caller from the token of a request.

use std::{borrow::Cow, sync::Arc};

use api::{ErrorCode, Plan};
use axum::http::{HeaderMap, header};
use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::{outer_layer::RequestId, route::AuthSchemes};
use crate::{
    access::{Caller, Credential, api_key::ApiKey, session::Session},
    app::App,
    error::{Error, Result, problem},
    seats,
};

/// Base64 with optional padding, because some clients omit it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns the caller that a request's bearer token belongs to.
///
/// # Errors
///
/// Same as [`identify_by`].
pub async fn identify(app: &App, headers: &HeaderMap, request_id: RequestId) -> Result<Caller> {
    identify_by(app, headers, AuthSchemes::Bearer, request_id).await
}

/// Returns the caller that a request's token belongs to; the token must use one of `schemes`.
///
/// # Errors
///
/// Fails with `unauthorized` without a valid token, and with the errors of [`seats::admit`] for a
/// session.
pub async fn identify_by(
    app: &App,
    headers: &HeaderMap,
    schemes: AuthSchemes,
    request_id: RequestId,
) -> Result<Caller> {
    let token = token(headers, schemes)?;
    let now = app.clock.now();
    if let Some(key) = ApiKey::parse(&token) {
        let known =
            app.access_cache.api_key(&key).await?.filter(|it| it.expires_at.is_none_or(|at| at > now));
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
    match app.sessions.check(&token, now).await? {
        Some(session) => of_session(app, session, request_id).await,
        None => Err(unauthorized("the token is not a valid API key or session token")),
    }
}

async fn of_session(app: &App, session: Session, request_id: RequestId) -> Result<Caller> {
    let tenant = app.access_cache.tenant_by_claim(&session.tenant).await?.ok_or_else(|| {
        problem(ErrorCode::UnknownTenant, "the token is valid, but its tenant does not exist")
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

/// Extracts the token of the only `Authorization` header.
fn token(headers: &HeaderMap, schemes: AuthSchemes) -> Result<Cow<'_, str>> {
    let expected = match schemes {
        AuthSchemes::Bearer => "`Bearer <token>`",
        AuthSchemes::BearerOrBasic => {
            "`Bearer <token>`, or `Basic <credentials>` with an API key as the password"
        }
    };
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(unauthorized(&format!("send exactly one Authorization header: {expected}")));
    };
    let malformed = || unauthorized(&format!("the Authorization header must read {expected}"));
    let text = value.to_str().map_err(|_| malformed())?;
    let (scheme, sent) = text.split_once(' ').ok_or_else(malformed)?;
    let sent = sent.trim_matches(' ');
    let token = if scheme.eq_ignore_ascii_case("bearer") {
        Cow::Borrowed(sent)
    } else if schemes == AuthSchemes::BearerOrBasic && scheme.eq_ignore_ascii_case("basic") {
        let password = password(sent).ok_or_else(malformed)?;
        if ApiKey::parse(&password).is_none() {
            return Err(unauthorized("the password of Basic authentication must be an API key"));
        }
        Cow::Owned(password)
    } else {
        return Err(malformed());
    };
    if token.is_empty() || token.contains(char::is_whitespace) {
        return Err(malformed());
    }
    Ok(token)
}

/// Extracts the password of `Basic` credentials, which are base64 of `user:password`.
fn password(credentials: &str) -> Option<String> {
    let decoded = String::from_utf8(BASE64.decode(credentials).ok()?).ok()?;
    decoded.split_once(':').map(|(_, password)| password.to_owned())
}

fn unauthorized(message: &str) -> Error {
    problem(ErrorCode::Unauthorized, message)
}
