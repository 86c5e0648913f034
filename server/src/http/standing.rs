//! Whether the caller of an answer that takes long may still have it.

use api::ErrorCode;
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};

use super::{auth, outer::RequestId};
use crate::{
    app::App,
    error::{Error, Result},
};

/// The token that a long answer was asked for with.
pub struct Standing(HeaderMap);

impl Standing {
    /// False once the token is revoked or over, or its member removed. While the database is away
    /// nobody can tell, and there is nothing to be had from it either.
    pub async fn holds(&self, app: &App) -> bool {
        match auth::identify(app, &self.0, RequestId::default()).await {
            Ok(_) => true,
            Err(Error::Problem(problem)) => problem.code == ErrorCode::Overloaded,
            Err(Error::Internal(_)) => false,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Standing {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let mut headers = HeaderMap::new();
        if let Some(token) = parts.headers.get(header::AUTHORIZATION) {
            headers.insert(header::AUTHORIZATION, token.clone());
        }
        Ok(Self(headers))
    }
}
