//! Verifies session tokens, and issues those of the local issuer.
//!
//! The algorithm of a token determines the expected issuer: HS256 is the local issuer's alone and never
//! an identity provider's, so that no public key can be used as a secret.

use anyhow::Context;
use api::Role;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, encode};
use serde::Serialize;

use super::{
    claims::{self, ClaimNames},
    jwt::UnverifiedToken,
    oidc::IdentityProvider,
};
use crate::{config::Config, error::Result};

/// The claims of a token of the local issuer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claims {
    /// The user.
    pub sub: String,
    /// The tenant's ID, or its name at an identity provider.
    pub tenant_id: String,
    /// `owner`, `member` or `viewer`.
    pub role: String,
    /// Seconds since the epoch.
    pub exp: i64,
    /// Seconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nbf: Option<i64>,
}

/// The verified and valid claims of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The user.
    pub subject: String,
    /// The tenant: its ID, or its name at the identity provider.
    pub tenant: String,
    /// The role.
    pub role: Role,
    /// Microseconds.
    pub expires_at: i64,
}

/// Verifies session tokens, and signs those of the local issuer.
#[derive(Default)]
pub struct Sessions {
    local: Option<LocalIssuer>,
    provider: Option<IdentityProvider>,
}

/// The server's own issuer: one secret signs, several verify.
struct LocalIssuer {
    signing_key: EncodingKey,
    verification_keys: Vec<DecodingKey>,
}

impl Sessions {
    /// Creates the sessions. The local issuer is enabled if its secret is set, or if no identity
    /// provider is. `derived` are the secrets derived from the master keys; the first one signs.
    ///
    /// # Errors
    ///
    /// Fails when there is no secret.
    pub fn configured(
        config: &Config,
        derived: impl FnOnce() -> anyhow::Result<Vec<[u8; 32]>>,
    ) -> anyhow::Result<Self> {
        if let Some(secret) = &config.session_secret {
            return Ok(Self::with_local_issuer(secret.as_bytes(), &[]));
        }
        if config.oidc.oidc_issuer.is_some() {
            return Ok(Self::default());
        }
        let secrets = derived()?;
        let (signing_key, other_keys) = secrets.split_first().context("there is no master key")?;
        Ok(Self::with_local_issuer(signing_key, other_keys))
    }

    /// Also accepts the tokens of this provider.
    #[must_use]
    pub fn with_provider(self, provider: Option<IdentityProvider>) -> Self {
        Self { provider, ..self }
    }

    /// Enables the local issuer: `signing_key` signs, and it and `other_keys` verify.
    pub fn with_local_issuer(signing_key: &[u8], other_keys: &[[u8; 32]]) -> Self {
        let mut verification_keys = vec![DecodingKey::from_secret(signing_key)];
        verification_keys.extend(other_keys.iter().map(|it| DecodingKey::from_secret(it)));
        let local = LocalIssuer { signing_key: EncodingKey::from_secret(signing_key), verification_keys };
        Self { local: Some(local), provider: None }
    }

    /// Returns whether [`Self::issue`] can sign.
    pub fn can_issue(&self) -> bool {
        self.local.is_some()
    }

    /// Signs a token.
    ///
    /// # Errors
    ///
    /// Fails when the local issuer is disabled, or signing fails.
    pub fn issue(&self, claims: &Claims) -> anyhow::Result<String> {
        let local = self.local.as_ref().context(
            "the local issuer is disabled because LOUPE_OIDC_ISSUER is set: sign in there, or set LOUPE_SESSION_SECRET as well",
        )?;
        encode(&Header::new(Algorithm::HS256), claims, &local.signing_key)
            .context("the token could not be signed")
    }

    /// Returns the session of a token, if a configured issuer signed it and it is valid at `now`
    /// (microseconds).
    ///
    /// # Errors
    ///
    /// Fails with `overloaded` when the identity provider's keys are needed and unavailable.
    pub async fn check(&self, token: &str, now: i64) -> Result<Option<Session>> {
        let Some(token) = UnverifiedToken::parse(token) else { return Ok(None) };
        match (token.algorithm, &self.local, &self.provider) {
            (Algorithm::HS256, Some(local), _) => Ok(local.check(&token, now)),
            (Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512, ..) => Ok(None),
            (_, _, Some(provider)) => provider.check(&token, now).await,
            (_, _, None) => Ok(None),
        }
    }
}

impl LocalIssuer {
    /// Returns the session of a valid token. The caller has checked that the algorithm is HS256.
    fn check(&self, token: &UnverifiedToken<'_>, now: i64) -> Option<Session> {
        let session = claims::session(&token.claims, &ClaimNames::default(), now)?;
        self.verification_keys.iter().any(|it| token.is_signed_by(it)).then_some(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000_000_000_000;
    const OURS: [u8; 32] = [7; 32];

    fn claims() -> Claims {
        let exp = NOW / 1_000_000 + 60;
        Claims { sub: "me".into(), tenant_id: "acme".into(), role: "member".into(), exp, nbf: None }
    }

    async fn accepts(sessions: &Sessions, token: &str) -> bool {
        sessions.check(token, NOW).await.unwrap().is_some()
    }

    async fn accepted(change: impl FnOnce(&mut Claims)) -> bool {
        let sessions = Sessions::with_local_issuer(&OURS, &[]);
        let mut claims = claims();
        change(&mut claims);
        accepts(&sessions, &sessions.issue(&claims).unwrap()).await
    }

    #[tokio::test]
    async fn session_token_is_accepted_only_while_valid() {
        assert!(accepted(|_| {}).await);
        assert!(accepted(|it| it.exp = NOW / 1_000_000 - 4).await);
        assert!(!accepted(|it| it.exp = NOW / 1_000_000 - 5).await);
        assert!(accepted(|it| it.nbf = Some(NOW / 1_000_000 + 60)).await);
        assert!(!accepted(|it| it.nbf = Some(NOW / 1_000_000 + 61)).await);
        assert!(!accepted(|it| it.role = "root".into()).await);
        assert!(!accepted(|it| it.tenant_id = " ".into()).await);
        assert!(!accepted(|it| it.sub = String::new()).await);
        assert!(!accepted(|it| it.sub = "a\0b".into()).await);
    }

    #[tokio::test]
    async fn session_token_with_other_secret_or_algorithm_is_rejected() {
        let ours = Sessions::with_local_issuer(&OURS, &[]);
        let theirs = Sessions::with_local_issuer(&[8; 32], &[]);
        assert!(!accepts(&ours, &theirs.issue(&claims()).unwrap()).await);
        let secret = EncodingKey::from_secret(&OURS);
        let hs512 = encode(&Header::new(Algorithm::HS512), &claims(), &secret).unwrap();
        assert!(!accepts(&ours, &hs512).await);
        // {"alg":"none"}
        let body = ours.issue(&claims()).unwrap();
        let unsigned = format!("eyJhbGciOiJub25lIn0.{}.", body.split('.').nth(1).unwrap());
        assert!(!accepts(&ours, &unsigned).await);
    }

    #[tokio::test]
    async fn session_token_of_previous_secret_is_accepted() {
        let before = Sessions::with_local_issuer(&OURS, &[]);
        let now = Sessions::with_local_issuer(&[8; 32], &[OURS]);
        assert!(accepts(&now, &before.issue(&claims()).unwrap()).await);
        assert!(!accepts(&before, &now.issue(&claims()).unwrap()).await);
    }

    #[tokio::test]
    async fn disabled_local_issuer_signs_no_token() {
        let none = Sessions::default();
        assert!(none.issue(&claims()).is_err());
        assert!(!accepts(&none, &Sessions::with_local_issuer(&OURS, &[]).issue(&claims()).unwrap()).await);
    }
}
