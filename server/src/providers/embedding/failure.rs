//! Failures of embedding providers, classified by their remedy. Pure.

use std::time::Duration;

use outbound::{HeaderMap, StatusCode};

use crate::providers::{
    provider_error::{parse_error, redacted_line, retry_after},
    rest::Pause,
};

/// Cool-down after a failure that requires another key, model or address.
const DENIED_COOL_DOWN: Duration = Duration::from_secs(600);

/// Why there are no vectors. The messages are suitable for the tenant who configured the provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Permanent: another key, model or address is required.
    #[error("{0}")]
    Denied(String),
    /// These texts are rejected; others may be accepted.
    #[error("{0}")]
    Unfit(String),
    /// Temporary.
    #[error("{why}")]
    Passing {
        /// What happened.
        why: String,
        /// The delay that the provider requires.
        after: Option<Duration>,
    },
    /// The response can't be used.
    #[error("{0}")]
    Unusable(String),
}

impl Failure {
    /// Creates a temporary failure.
    pub fn passing(why: impl Into<String>) -> Self {
        Self::Passing { why: why.into(), after: None }
    }

    /// Classifies an error response, at `now` in microseconds. `secret` is removed from the message,
    /// because some providers repeat the key.
    pub fn of(status: StatusCode, headers: &HeaderMap, body: &[u8], secret: &str, now: i64) -> Self {
        let words = parse_error(body).map(|it| redacted_line(&it.message, secret)).unwrap_or_default();
        let said = if words.is_empty() { String::new() } else { format!(": {words}") };
        let why = format!("it returned status {}{said}", status.as_u16());
        match status.as_u16() {
            400 | 413 | 422 => Self::Unfit(why),
            408 | 409 | 425 | 429 | 500..=599 => Self::Passing { why, after: retry_after(headers, now) },
            // Redirects are not followed: the configured address must be changed.
            _ => Self::Denied(why),
        }
    }

    /// Returns the label in metrics.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Denied(_) => "denied",
            Self::Unfit(_) => "unfit",
            Self::Passing { .. } => "failed",
            Self::Unusable(_) => "unusable",
        }
    }

    /// Returns the cool-down of the circuit breaker.
    pub const fn pause(&self) -> Pause {
        match self {
            Self::Denied(_) | Self::Unfit(_) => Pause::Fixed(DENIED_COOL_DOWN),
            Self::Passing { after, .. } => Pause::Growing(*after),
            Self::Unusable(_) => Pause::Growing(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, body: &str) -> Failure {
        let headers = HeaderMap::new();
        Failure::of(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes(), "sk-1", 1_000_000)
    }

    #[test]
    fn embedding_failure_is_classified_by_status() {
        for status in [301, 401, 402, 403, 404, 405, 410] {
            assert_eq!(of(status, "").word(), "denied", "{status}");
        }
        for status in [400, 413, 422] {
            assert_eq!(of(status, "").word(), "unfit", "{status}");
        }
        for status in [408, 429, 500, 502, 503, 529] {
            assert_eq!(of(status, "").word(), "failed", "{status}");
        }
    }

    #[test]
    fn embedding_failure_quotes_provider_without_key() {
        let said = of(401, r#"{"error":{"message":"Incorrect key sk-1\nprovided"}}"#).to_string();
        assert_eq!(said, "it returned status 401: Incorrect key … provided");
        assert_eq!(of(500, "<html>").to_string(), "it returned status 500");
    }
}
