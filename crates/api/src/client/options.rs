//! What a client is made of, and what it tells of its work.

use std::{sync::Arc, time::Duration};

use super::Retry;

/// Longest time for a request that is answered once a judge has: a judge may be asked twice, a
/// minute each, and the rest is the way there and back.
pub const JUDGE_TIMEOUT: Duration = Duration::from_secs(180);

/// What a client is made of.
#[derive(Clone)]
pub struct Options {
    /// Base address of the server.
    pub url: String,
    /// API key, if there is one.
    pub api_key: Option<String>,
    /// Session token, if there is one.
    pub session_token: Option<String>,
    /// Longest time for one request, body included. The stream ignores it.
    pub timeout: Duration,
    /// How often a request is repeated.
    pub retry: Retry,
    /// Told about every request and every wait.
    pub observer: Option<Observer>,
}

impl Options {
    /// A server without credentials, 30 s for a request, three tries.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            api_key: None,
            session_token: None,
            timeout: Duration::from_secs(30),
            retry: Retry::default(),
            observer: None,
        }
    }
}

/// Hears what the client does.
pub type Observer = Arc<dyn Fn(&Notice) + Send + Sync>;

/// Something that the client did, without secrets.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A request ended.
    Requested {
        /// `GET` and the like.
        method: String,
        /// Path and query.
        path: String,
        /// Status, or why there is none.
        outcome: Result<u16, String>,
        /// How long it took.
        elapsed: Duration,
        /// The server's identifier of it.
        request_id: Option<String>,
        /// Headers of the answer.
        headers: Vec<(String, String)>,
    },
    /// A wait before the request is repeated.
    Waiting {
        /// Why the last try failed.
        why: String,
        /// How long.
        delay: Duration,
        /// Number of the try that follows, from 2.
        attempt: u32,
        /// Number of tries in all.
        attempts: u32,
    },
}
