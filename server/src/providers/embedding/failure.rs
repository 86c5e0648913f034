//! Why there are no vectors, sorted by what helps. Pure.

use std::time::Duration;

use hyper::{HeaderMap, StatusCode};

use crate::providers::{
    rest::Pause,
    said::{pause, reason, without},
};

/// How long a provider is left alone after a failure that only another key, model or address mends.
const DENIED: Duration = Duration::from_secs(600);

/// Why there are no vectors. The texts are fit for whoever set the provider up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Nothing helps but another key, model or address.
    #[error("{0}")]
    Denied(String),
    /// These texts are refused; others may not be.
    #[error("{0}")]
    Unfit(String),
    /// Later it may work.
    #[error("{why}")]
    Passing {
        /// What happened.
        why: String,
        /// How long the provider asks to be left alone.
        after: Option<Duration>,
    },
    /// There was an answer, and it can't be used.
    #[error("{0}")]
    Unusable(String),
}

impl Failure {
    /// Something on the way to the provider.
    pub fn passing(why: impl Into<String>) -> Self {
        Self::Passing { why: why.into(), after: None }
    }

    /// An answer that is no success, at `now` in microseconds. `secret` is left out of what is
    /// told: some providers repeat the key.
    pub fn of(status: StatusCode, headers: &HeaderMap, body: &[u8], secret: &str, now: i64) -> Self {
        let words = reason(body).map(|it| without(&it.message, secret)).unwrap_or_default();
        let said = if words.is_empty() { String::new() } else { format!(": {words}") };
        let why = format!("it answered {}{said}", status.as_u16());
        match status.as_u16() {
            400 | 413 | 422 => Self::Unfit(why),
            408 | 409 | 425 | 429 | 500..=599 => Self::Passing { why, after: pause(headers, now) },
            // Redirects are not followed: they are an address that has to be set anew.
            _ => Self::Denied(why),
        }
    }

    /// The word in the figures.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Denied(_) => "denied",
            Self::Unfit(_) => "unfit",
            Self::Passing { .. } => "failed",
            Self::Unusable(_) => "unusable",
        }
    }

    /// How long the provider is left alone after it.
    pub const fn pause(&self) -> Pause {
        match self {
            Self::Denied(_) | Self::Unfit(_) => Pause::Fixed(DENIED),
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
    fn statuses_are_sorted_by_what_helps() {
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
    fn the_provider_is_quoted_without_the_key() {
        let said = of(401, r#"{"error":{"message":"Incorrect key sk-1\nprovided"}}"#).to_string();
        assert_eq!(said, "it answered 401: Incorrect key … provided");
        assert_eq!(of(500, "<html>").to_string(), "it answered 500");
    }
}
