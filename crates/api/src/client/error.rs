//! Why a call did not succeed.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::{ErrorCode, plain::json_error};

/// A call that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server answered, and not with a success.
    #[error("{}", .0.message)]
    Answer(Box<ApiError>),
    /// There was no answer: name, connection, TLS or time.
    #[error("can't reach {url}: {why}")]
    Unreachable {
        /// Base address.
        url: String,
        /// The reason, as a sentence.
        why: String,
        /// Whether the request may have arrived.
        sent: bool,
    },
    /// There is no credential of the kind that the call needs; nothing was sent.
    #[error("{}", if *session { "a session token is needed" } else { "no API key and no session token" })]
    NoCredential {
        /// Only a session would do.
        session: bool,
    },
    /// A credential holds characters that no token has; nothing was sent.
    #[error("the credential holds characters that can't be sent")]
    BadCredential,
    /// The address is not one of a server; nothing was sent.
    #[error("`{url}` is not a server address: {why}")]
    Address {
        /// The address.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The answer is not the JSON that this version expects.
    #[error("the answer can't be read: {}", json_error(source))]
    Unreadable {
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The live stream was asked for, and something else came.
    #[error("the server has no live stream")]
    NotAStream,
}

/// An answer that is not a success.
#[derive(Clone, Debug)]
pub struct ApiError {
    /// HTTP status.
    pub status: u16,
    /// Machine-readable code, empty if the answer had none.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// The server's identifier of the request.
    pub request_id: Option<String>,
    /// The body, null if it is not JSON.
    pub body: Value,
    /// How long to wait before the next try, if the server said so.
    pub retry_after: Option<Duration>,
}

impl ApiError {
    /// Reads an error answer; a body of another shape (a proxy's page) is tolerated.
    pub fn new(status: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        let code = text("code").unwrap_or_default();
        // On an archived project `error` is the key, and `message` the sentence.
        let message = text("message").or_else(|| text("error")).unwrap_or_else(|| match header("location") {
            Some(location) => format!("the server redirects to {location}; use that address"),
            None => format!("the server answered {status}"),
        });
        let request_id = text("request_id").or_else(|| header("x-request-id"));
        let seconds = |name: &str| header(name).and_then(|value| value.trim().parse().ok());
        let retry_after = seconds("retry-after").or_else(|| window_left(status, headers));
        let retry_after = retry_after.map(Duration::from_secs);
        Self { status, code, message, request_id, retry_after, body }
    }

    /// The code, if this version knows it.
    pub fn known_code(&self) -> Option<ErrorCode> {
        ErrorCode::of(&self.code)
    }
}

impl Error {
    /// The server's answer, if there was one.
    pub fn answer(&self) -> Option<&ApiError> {
        match self {
            Self::Answer(answer) => Some(answer),
            _ => None,
        }
    }

    /// The status of the server's answer, if there was one.
    pub fn status(&self) -> Option<u16> {
        self.answer().map(|answer| answer.status)
    }

    /// Whether the request may have been taken on all the same: its answer was lost, or the
    /// server failed at it.
    pub fn may_be_done(&self) -> bool {
        match self {
            Self::Unreachable { sent, .. } => *sent,
            Self::Answer(answer) => answer.status >= 500,
            _ => false,
        }
    }

    /// A few words that say why, for a note about the next try.
    pub fn cause(&self) -> String {
        match self {
            Self::Answer(answer) if answer.status == 429 => "rate limited".to_owned(),
            Self::Answer(answer) => format!("the server answered {}", answer.status),
            Self::Unreachable { why, .. } => why.clone(),
            other => other.to_string(),
        }
    }
}

/// Seconds until the window of a rate limit ends, by the server's own clock.
fn window_left(status: u16, headers: &HeaderMap) -> Option<u64> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let ends: i64 = header("x-ratelimit-reset").filter(|_| status == 429)?.trim().parse().ok()?;
    let now = chrono::DateTime::parse_from_rfc2822(header("date")?).ok()?;
    u64::try_from(ends - now.timestamp()).ok()
}
