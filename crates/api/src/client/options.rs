//! Configuration and events of a client.

use std::{sync::Arc, time::Duration};

use super::Retry;

/// Timeout of requests that wait for a judge: up to two calls of a minute each, plus the network.
pub const JUDGE_TIMEOUT: Duration = Duration::from_secs(180);

/// Configuration of a client.
#[derive(Clone)]
pub struct Options {
    /// Base address of the server.
    pub url: String,
    /// API key, if configured.
    pub api_key: Option<String>,
    /// Session token, if configured.
    pub session_token: Option<String>,
    /// Timeout per request, including the body. The stream ignores it.
    pub timeout: Duration,
    /// Retry policy.
    pub retry: Retry,
    /// Receives an event for every request and every delay.
    pub observer: Option<Observer>,
}

impl Options {
    /// Returns options without credentials, with a timeout of 30 s and three attempts.
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

/// A callback for the events of a client.
pub type Observer = Arc<dyn Fn(&Notice) + Send + Sync>;

/// An event of a client, without secrets.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A request ended.
    Requested {
        /// HTTP method.
        method: String,
        /// Path and query.
        path: String,
        /// Status, or why there is none.
        outcome: Result<u16, String>,
        /// Duration of the request.
        elapsed: Duration,
        /// The server's identifier of the request.
        request_id: Option<String>,
        /// Headers of the response.
        headers: Vec<(String, String)>,
    },
    /// The client waits before the next attempt.
    Waiting {
        /// Why the last attempt failed.
        why: String,
        /// Length of the delay.
        delay: Duration,
        /// Number of the next attempt, from 2.
        attempt: u32,
        /// Maximum number of attempts.
        attempts: u32,
    },
}
