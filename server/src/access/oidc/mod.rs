//! Session tokens of an identity provider: OpenID Connect, or any issuer of signed JWTs that publishes
//! its keys.
//!
//! The claims are checked before the keys, so that only plausible tokens cause requests to the
//! provider.

mod cache;
mod key_set;

use std::sync::Arc;

use outbound::OutboundClient;

pub use self::cache::KeyFetcher;
use self::cache::ProviderKeys;
use super::{
    claims::{self, ClaimNames},
    jwt::UnverifiedToken,
    session::Session,
};
use crate::{clock::Clock, config::OidcSettings, error::Result, providers::jwks::PublishedKeys};

/// The identity provider whose tokens are accepted.
pub struct IdentityProvider {
    issuer: String,
    audience: Option<String>,
    names: ClaimNames,
    keys: ProviderKeys,
}

impl IdentityProvider {
    /// Returns the configured provider, if any, and the task that fetches its keys.
    ///
    /// # Errors
    ///
    /// Fails when a setting is invalid.
    pub fn configured(
        settings: &OidcSettings,
        clock: Arc<dyn Clock>,
        outbound: &OutboundClient,
    ) -> anyhow::Result<Option<(Self, KeyFetcher)>> {
        let Some(issuer) = &settings.oidc_issuer else { return Ok(None) };
        if settings.oidc_audience.is_none() {
            tracing::warn!(
                issuer,
                "LOUPE_OIDC_AUDIENCE is not set: tokens that this issuer made for other applications are accepted too"
            );
        }
        let source = PublishedKeys::new(issuer, settings.oidc_jwks_url.as_deref(), outbound.clone())?;
        let (keys, fetcher) = ProviderKeys::new(Box::new(source), clock);
        let provider = Self {
            issuer: issuer.clone(),
            audience: settings.oidc_audience.clone(),
            names: ClaimNames {
                tenant: settings.oidc_tenant_claim.clone(),
                role: settings.oidc_role_claim.clone(),
            },
            keys,
        };
        Ok(Some((provider, fetcher)))
    }

    /// Returns the session of a token, if the provider signed it for this audience and it is valid at
    /// `now` (microseconds).
    ///
    /// # Errors
    ///
    /// Fails with `overloaded` when the provider's keys are needed and it does not respond.
    pub async fn check(&self, token: &UnverifiedToken<'_>, now: i64) -> Result<Option<Session>> {
        let Some(session) = self.claimed_session(token, now) else { return Ok(None) };
        Ok(self.keys.verify(token, now).await?.then_some(session))
    }

    /// Returns the session that the claims describe, if issuer and audience match.
    fn claimed_session(&self, token: &UnverifiedToken<'_>, now: i64) -> Option<Session> {
        let is_for_us = token.claims.get("iss").is_some_and(|it| *it == self.issuer)
            && self.audience.as_ref().is_none_or(|it| claims::is_for_audience(&token.claims, it));
        is_for_us.then(|| claims::session(&token.claims, &self.names, now)).flatten()
    }
}
