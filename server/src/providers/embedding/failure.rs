//! Failures of embedding providers, classified by their remedy. Pure.

use std::time::Duration;

use outbound::{HeaderMap, StatusCode};

use crate::providers::{
    circuit_breaker::CoolDown,
    provider_error::{parse_error, redacted_line, retry_after as parse_retry_after},
};

/// Cool-down after a failure that requires another key, model or address.
const DENIED_COOL_DOWN: Duration = Duration::from_secs(600);

/// Why there are no vectors. The messages are suitable for the tenant who configured the provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbeddingFailure {
    /// Permanent: another key, model or address is required.
    #[error("{0}")]
    Denied(String),
    /// These texts are rejected; others may be accepted.
    #[error("{0}")]
    TextRejected(String),
    /// Temporary.
    #[error("{why}")]
    Temporary {
        /// What happened.
        why: String,
        /// The delay that the provider requires.
        retry_after: Option<Duration>,
    },
    /// The response cannot be used.
    #[error("{0}")]
    InvalidResponse(String),
}

impl EmbeddingFailure {
    /// Creates a temporary failure.
    pub fn temporary(why: impl Into<String>) -> Self {
        Self::Temporary { why: why.into(), retry_after: None }
    }

    /// Classifies an error response, at `now` in microseconds. `secret` is removed from the message,
    /// because some providers repeat the key.
    pub fn of(status: StatusCode, headers: &HeaderMap, body: &[u8], secret: &str, now: i64) -> Self {
        let message = parse_error(body).map(|it| redacted_line(&it.message, secret)).unwrap_or_default();
        let quoted = if message.is_empty() { String::new() } else { format!(": {message}") };
        let why = format!("it returned status {}{quoted}", status.as_u16());
        match status.as_u16() {
            400 | 413 | 422 => Self::TextRejected(why),
            408 | 409 | 425 | 429 | 500..=599 => {
                Self::Temporary { why, retry_after: parse_retry_after(headers, now) }
            }
            // Redirects are not followed: the configured address must be changed.
            _ => Self::Denied(why),
        }
    }

    /// Returns the label in metrics.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Denied(_) => "denied",
            Self::TextRejected(_) => "unfit",
            Self::Temporary { .. } => "failed",
            Self::InvalidResponse(_) => "unusable",
        }
    }

    /// Returns the cool-down of the circuit breaker.
    pub const fn cool_down(&self) -> CoolDown {
        match self {
            Self::Denied(_) | Self::TextRejected(_) => CoolDown::Fixed(DENIED_COOL_DOWN),
            Self::Temporary { retry_after, .. } => CoolDown::Growing(*retry_after),
            Self::InvalidResponse(_) => CoolDown::Growing(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, body: &str) -> EmbeddingFailure {
        let headers = HeaderMap::new();
        EmbeddingFailure::of(
            StatusCode::from_u16(status).unwrap(),
            &headers,
            body.as_bytes(),
            "sk-1",
            1_000_000,
        )
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
        let quoted = of(401, r#"{"error":{"message":"Incorrect key sk-1\nprovided"}}"#).to_string();
        assert_eq!(quoted, "it returned status 401: Incorrect key … provided");
        assert_eq!(of(500, "<html>").to_string(), "it returned status 500");
    }
}
