//! Re-checks the token of a long response, such as a stream or an export.

use api::ErrorCode;
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};

use super::{auth, outer_layer::RequestId};
use crate::{
    app::App,
    error::{Error, Result},
};

/// The token of the request.
pub struct TokenRecheck(HeaderMap);

impl TokenRecheck {
    /// Whether the token is still valid: not revoked or expired, and its member not removed. True while
    /// the database is unreachable, because the token cannot be checked and no data can be read.
    pub async fn is_valid(&self, app: &App) -> bool {
        match auth::identify(app, &self.0, RequestId::default()).await {
            Ok(_) => true,
            Err(Error::Problem(problem)) => problem.code == ErrorCode::Overloaded,
            Err(Error::Internal(_)) => false,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for TokenRecheck {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let mut headers = HeaderMap::new();
        if let Some(token) = parts.headers.get(header::AUTHORIZATION) {
            headers.insert(header::AUTHORIZATION, token.clone());
        }
        Ok(Self(headers))
    }
}
