//! What the server answered.

use reqwest::header::HeaderMap;
use serde::de::DeserializeOwned;

use super::Error;

/// The answer to a request that succeeded.
#[derive(Clone, Debug)]
pub struct Answer {
    /// 200 to 299.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body; empty on 204.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body, read as JSON; an empty body reads as null.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let body = if self.body.is_empty() { b"null".as_slice() } else { &self.body };
        serde_json::from_slice(body).map_err(|source| Error::Unreadable { source })
    }

    /// Whether this is the kept answer to an earlier try, from which secrets are left out.
    pub fn is_replayed(&self) -> bool {
        self.headers.get("idempotency-replayed").is_some_and(|value| value == "true")
    }

    /// `X-RateLimit-Limit` and `X-RateLimit-Remaining`, where the server sent both.
    pub fn rate_limit(&self) -> Option<(u64, u64)> {
        let number = |name| self.headers.get(name)?.to_str().ok()?.parse().ok();
        Some((number("x-ratelimit-limit")?, number("x-ratelimit-remaining")?))
    }
}
