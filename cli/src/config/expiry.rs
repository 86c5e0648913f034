//! The expiry time of a session token, read from the token without verification, for warnings only.

use api::Timestamp;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use super::Settings;
use crate::env::now;

/// Remaining seconds of a session from which a warning is shown.
const WARNING_SECONDS: i64 = 5 * 60;

/// The expiry of the session token of this run.
#[derive(Debug)]
pub struct SessionExpiry {
    at: Timestamp,
    warned: bool,
}

impl SessionExpiry {
    /// Returns the expiry of the session token, if there is a token that states one.
    pub fn of(settings: &Settings) -> Option<Self> {
        let at = end_of(&settings.session.as_ref()?.value)?;
        Some(Self { at, warned: false })
    }

    /// Returns a warning when the session is about to end, once.
    pub fn warning(&mut self) -> Option<String> {
        let left = self.seconds_left();
        let due = (1..=WARNING_SECONDS).contains(&left)
            && !std::mem::replace(&mut self.warned, left <= WARNING_SECONDS);
        due.then(|| {
            format!(
                "the session ends in {}; renew it: loupe auth login --session",
                approximate_duration(left)
            )
        })
    }

    /// Returns a message that says how long ago the session ended; `None` while it is valid.
    pub fn expired_message(&self) -> Option<String> {
        let left = self.seconds_left();
        (left <= 0).then(|| format!("the session token ended {} ago", approximate_duration(-left)))
    }

    fn seconds_left(&self) -> i64 {
        (self.at.micros() - Timestamp::from(now().to_utc()).micros()) / 1_000_000
    }
}

/// Formats a duration in its largest unit: `42s`, `12m`, `3h`, `90d`.
pub fn approximate_duration(seconds: i64) -> String {
    match seconds.max(0) {
        s @ ..120 => format!("{s}s"),
        s @ ..7_200 => format!("{}m", s / 60),
        s @ ..172_800 => format!("{}h", s / 3_600),
        s => format!("{}d", s / 86_400),
    }
}

/// Returns the claim `exp` of a token (RFC 7519, 4.1.4) without verification.
fn end_of(token: &str) -> Option<Timestamp> {
    let payload = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&payload).ok()?;
    Some(Timestamp::from_micros(claims.get("exp")?.as_i64()?.checked_mul(1_000_000)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending_in(seconds: i64) -> SessionExpiry {
        let exp = Timestamp::from(now().to_utc()).micros() / 1_000_000 + seconds;
        let payload = BASE64_URL_SAFE_NO_PAD.encode(format!("{{\"sub\":\"ann\",\"exp\":{exp}}}"));
        SessionExpiry { at: end_of(&format!("e30.{payload}.c2ln")).unwrap(), warned: false }
    }

    #[test]
    fn session_expiry_is_warned_about_once() {
        assert!(ending_in(600).warning().is_none() && ending_in(600).expired_message().is_none());
        let mut soon = ending_in(200);
        assert!(soon.warning().is_some_and(|text| text.contains("3m")), "{soon:?}");
        assert!(soon.warning().is_none());
        assert!(ending_in(-60).expired_message().is_some_and(|text| text.contains("ago")));
    }

    #[test]
    fn token_without_expiry_claim_has_no_expiry() {
        for token in ["", "lp_key", "a.b.c", "e30.e30.e30"] {
            assert_eq!(end_of(token), None, "{token}");
        }
    }
}
