//! Errors of calls.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::{ErrorCode, plain::json_error};

/// Maximum number of bytes of the body of an error response that are kept as text.
const MAX_TEXT_BYTES: usize = 4 * 1024;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server returned an error response.
    #[error("{}", .0.message)]
    Response(Box<ApiError>),
    /// There was no response: name resolution, connection, TLS or timeout.
    #[error("can't reach {url}: {why}")]
    Unreachable {
        /// Base address.
        url: String,
        /// The reason, as a sentence.
        why: String,
        /// Whether the server may have received the request.
        sent: bool,
    },
    /// No credential of the required kind is configured; nothing was sent.
    #[error("{}", if *session { "a session token is needed" } else { "no credentials are configured" })]
    NoCredential {
        /// Whether a session token is required.
        session: bool,
    },
    /// The credential contains characters that a header cannot contain; nothing was sent.
    #[error("the credential contains characters that can't be sent")]
    BadCredential,
    /// The URL is not the address of a server; nothing was sent.
    #[error("`{url}` is not a server address: {why}")]
    Address {
        /// The address.
        url: String,
        /// The reason why it is invalid.
        why: String,
    },
    /// The response does not have the expected shape.
    #[error("the response can't be parsed: {}", json_error(source))]
    Unreadable {
        /// The parse error.
        source: serde_json::Error,
    },
    /// The server responded to a stream request with something else.
    #[error("the server does not support the live stream")]
    NotAStream,
}

/// An error response.
#[derive(Clone, Debug)]
pub struct ApiError {
    /// HTTP status.
    pub status: u16,
    /// Machine-readable code; empty if the response has none.
    pub code: String,
    /// Message for people.
    pub message: String,
    /// The server's identifier of the request.
    pub request_id: Option<String>,
    /// The body, null if it is not JSON.
    pub body: Value,
    /// The first 4 KiB of the body as text.
    pub text: String,
    /// The delay that the server requires before the next attempt.
    pub retry_after: Option<Duration>,
}

impl ApiError {
    /// Parses an error response; accepts bodies of other shapes, such as a proxy's error page.
    pub fn new(status: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let beginning = String::from_utf8_lossy(&body[..body.len().min(MAX_TEXT_BYTES)]).into_owned();
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        let code = text("code").unwrap_or_default();
        // For an archived project, `error` contains the code and `message` the sentence.
        let message = text("message").or_else(|| text("error")).unwrap_or_else(|| match header("location") {
            Some(location) => format!("the server redirects to {location}; use that address"),
            None => format!("the server returned status {status}"),
        });
        let request_id = text("request_id").or_else(|| header("x-request-id"));
        let seconds = |name: &str| header(name).and_then(|value| value.trim().parse().ok());
        let retry_after = seconds("retry-after").or_else(|| window_left(status, headers));
        let retry_after = retry_after.map(Duration::from_secs);
        Self { status, code, message, request_id, retry_after, body, text: beginning }
    }

    /// Returns the code, if this version knows it.
    pub fn known_code(&self) -> Option<ErrorCode> {
        ErrorCode::of(&self.code)
    }
}

impl Error {
    /// Returns the error response, if there was one.
    pub fn response(&self) -> Option<&ApiError> {
        match self {
            Self::Response(response) => Some(response),
            _ => None,
        }
    }

    /// Returns the status of the error response, if there was one.
    pub fn status(&self) -> Option<u16> {
        self.response().map(|response| response.status)
    }

    /// Returns whether the server may have executed the request: its response was lost, or it failed with 5xx.
    pub fn may_be_done(&self) -> bool {
        match self {
            Self::Unreachable { sent, .. } => *sent,
            Self::Response(response) => response.status >= 500,
            _ => false,
        }
    }

    /// Returns a short reason, for a message about the next attempt.
    pub fn cause(&self) -> String {
        match self {
            Self::Response(response) if response.status == 429 => "rate limited".to_owned(),
            Self::Response(response) => format!("the server returned status {}", response.status),
            Self::Unreachable { why, .. } => why.clone(),
            other => other.to_string(),
        }
    }
}

/// Returns the seconds until the rate limit's window ends, by the server's clock.
fn window_left(status: u16, headers: &HeaderMap) -> Option<u64> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let ends: i64 = header("x-ratelimit-reset").filter(|_| status == 429)?.trim().parse().ok()?;
    let now = chrono::DateTime::parse_from_rfc2822(header("date")?).ok()?;
    u64::try_from(ends - now.timestamp()).ok()
}
