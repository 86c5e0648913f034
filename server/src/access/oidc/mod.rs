//! Session tokens of an identity provider: OpenID Connect, or any issuer of signed JWTs that
//! publishes its keys.
//!
//! The claims are looked at first and the keys afterwards, so that only a token that could be good
//! makes the server ask the provider for anything.

mod cache;
mod key_set;

use std::sync::Arc;

pub use self::cache::Keeper;
use self::cache::Keys;
use super::{
    claims::{self, Names},
    jwt::Token,
    session::Session,
};
use crate::{clock::Clock, config::OidcSettings, error::Result, providers::jwks::Published};

/// The identity provider whose tokens are taken.
pub struct Provider {
    issuer: String,
    audience: Option<String>,
    names: Names,
    keys: Keys,
}

impl Provider {
    /// The provider that the settings name, if they name one, and the keeper of its keys.
    ///
    /// # Errors
    /// When a setting can't be used.
    pub fn configured(
        settings: &OidcSettings,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Option<(Self, Keeper)>> {
        let Some(issuer) = &settings.oidc_issuer else { return Ok(None) };
        if settings.oidc_audience.is_none() {
            tracing::warn!(
                issuer,
                "LOUPE_OIDC_AUDIENCE is not set: tokens that this issuer made for other applications are taken too"
            );
        }
        let source = Published::new(issuer, settings.oidc_jwks_url.as_deref())?;
        let (keys, keeper) = Keys::new(Box::new(source), clock);
        let provider = Self {
            issuer: issuer.clone(),
            audience: settings.oidc_audience.clone(),
            names: Names {
                tenant: settings.oidc_tenant_claim.clone(),
                role: settings.oidc_role_claim.clone(),
            },
            keys,
        };
        Ok(Some((provider, keeper)))
    }

    /// The session of a token, if the provider signed it for us and it is in force at `now`
    /// (microseconds).
    ///
    /// # Errors
    /// `overloaded` when the provider has to be asked for its keys and does not answer.
    pub async fn check(&self, token: &Token<'_>, now: i64) -> Result<Option<Session>> {
        let Some(session) = self.claimed(token, now) else { return Ok(None) };
        Ok(self.keys.have_signed(token, now).await?.then_some(session))
    }

    /// The session that the claims describe, if they are this provider's and meant for us.
    fn claimed(&self, token: &Token<'_>, now: i64) -> Option<Session> {
        let ours = token.claims.get("iss").is_some_and(|it| *it == self.issuer)
            && self.audience.as_ref().is_none_or(|it| claims::is_for(&token.claims, it));
        ours.then(|| claims::session(&token.claims, &self.names, now)).flatten()
    }
}
