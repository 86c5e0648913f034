//! Session tokens of the local issuer: JWT, HS256, nothing else.

use api::Role;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Who it is.
    pub sub: String,
    /// The tenant's id.
    pub tenant_id: String,
    /// `owner`, `member` or `viewer`.
    pub role: String,
    /// Seconds since the epoch.
    pub exp: i64,
    /// Seconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<i64>,
}

/// A token that was signed by us and is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Who it is.
    pub subject: String,
    /// The tenant it claims.
    pub tenant_id: Uuid,
    /// What it may do.
    pub role: Role,
    /// Microseconds.
    pub expires_at: i64,
}

/// Signs and checks session tokens.
pub struct Sessions {
    encoding: EncodingKey,
    decoding: DecodingKey,
}

/// Longest token that is looked at.
const MAX_TOKEN: usize = 8 * 1024;
/// Seconds that clocks may differ by.
const LEEWAY: i64 = 5;

impl Sessions {
    /// With the secret that signs.
    pub fn new(secret: &[u8]) -> Self {
        Self { encoding: EncodingKey::from_secret(secret), decoding: DecodingKey::from_secret(secret) }
    }

    /// Signs a token.
    ///
    /// # Errors
    /// When signing fails.
    pub fn issue(&self, claims: &Claims) -> Result<String, jsonwebtoken::errors::Error> {
        encode(&Header::new(Algorithm::HS256), claims, &self.encoding)
    }

    /// The session of a token, if it is ours and in force at `now` (microseconds). The
    /// algorithm is fixed, whatever the token's header asks for.
    pub fn check(&self, token: &str, now: i64) -> Option<Session> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let mut validation = Validation::new(Algorithm::HS256);
        // Times are compared below, with the injected clock.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        validation.set_required_spec_claims(&["exp", "sub"]);
        let claims = decode::<Claims>(token, &self.decoding, &validation).ok()?.claims;
        let seconds = now / 1_000_000;
        if claims.exp <= seconds - LEEWAY
            || claims.nbf.is_some_and(|it| it > seconds + LEEWAY)
            || claims.sub.is_empty()
        {
            return None;
        }
        Some(Session {
            subject: claims.sub,
            tenant_id: claims.tenant_id.parse().ok()?,
            role: claims.role.parse().ok()?,
            expires_at: claims.exp.saturating_mul(1_000_000),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000_000_000_000;

    fn claims() -> Claims {
        Claims {
            sub: "me".into(),
            tenant_id: Uuid::nil().to_string(),
            role: "member".into(),
            exp: NOW / 1_000_000 + 60,
            nbf: None,
        }
    }

    fn accepted(change: impl FnOnce(&mut Claims)) -> bool {
        let sessions = Sessions::new(b"a secret of at least thirty-two bytes");
        let mut claims = claims();
        change(&mut claims);
        sessions.check(&sessions.issue(&claims).unwrap(), NOW).is_some()
    }

    #[test]
    fn only_tokens_in_force_are_accepted() {
        assert!(accepted(|_| {}));
        assert!(!accepted(|it| it.exp = NOW / 1_000_000 - 60));
        assert!(!accepted(|it| it.nbf = Some(NOW / 1_000_000 + 60)));
        assert!(!accepted(|it| it.role = "root".into()));
        assert!(!accepted(|it| it.tenant_id = "acme".into()));
        assert!(!accepted(|it| it.sub = String::new()));
    }

    #[test]
    fn other_secrets_and_algorithms_are_refused() {
        let ours = Sessions::new(b"a secret of at least thirty-two bytes");
        let theirs = Sessions::new(b"another one of at least 32 bytes here");
        assert!(ours.check(&theirs.issue(&claims()).unwrap(), NOW).is_none());
        let secret = EncodingKey::from_secret(b"a secret of at least thirty-two bytes");
        let hs512 = encode(&Header::new(Algorithm::HS512), &claims(), &secret).unwrap();
        assert!(ours.check(&hs512, NOW).is_none());
        // {"alg":"none"}
        let body = ours.issue(&claims()).unwrap();
        let unsigned = format!("eyJhbGciOiJub25lIn0.{}.", body.split('.').nth(1).unwrap());
        assert!(ours.check(&unsigned, NOW).is_none());
    }
}
