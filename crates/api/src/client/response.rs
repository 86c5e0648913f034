//! A successful response.

use reqwest::header::HeaderMap;
use serde::de::DeserializeOwned;

use super::Error;

/// The response to a request that succeeded.
#[derive(Clone, Debug)]
pub struct ApiResponse {
    /// Status, 200 to 299.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body; empty for 204.
    pub body: Vec<u8>,
}

impl ApiResponse {
    /// Parses the body as JSON; an empty body counts as null.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let body = if self.body.is_empty() { b"null".as_slice() } else { &self.body };
        serde_json::from_slice(body).map_err(|source| Error::Unreadable { source })
    }

    /// Whether this is the stored response of an earlier attempt, which omits secrets.
    pub fn is_replayed(&self) -> bool {
        self.headers.get("idempotency-replayed").is_some_and(|value| value == "true")
    }

    /// Returns `X-RateLimit-Limit` and `X-RateLimit-Remaining`, if both are present.
    pub fn rate_limit(&self) -> Option<(u64, u64)> {
        let number = |name| self.headers.get(name)?.to_str().ok()?.parse().ok();
        Some((number("x-ratelimit-limit")?, number("x-ratelimit-remaining")?))
    }
}
