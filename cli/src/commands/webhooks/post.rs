//! Posts the body of a delivery to a receiver.

use std::time::{Duration, Instant};

use api::client::{Auth, Body, Call, Client, Error, Observer, Options, Retry};
use serde_json::Value;
use url::{Position, Url};

use super::signature::Headers;
use crate::error::{CliError, Result};

/// Maximum number of characters of a response that are kept, as many as the server stores.
const MAX_RESPONSE_CHARS: usize = 4 * 1024;

/// The receiver of posted deliveries.
pub struct PostTarget {
    client: Client,
    /// Path and query of the address.
    path: String,
}

/// The result of a request to a receiver.
pub struct PostResult {
    /// HTTP status; 0 without a response.
    pub status: u16,
    /// The beginning of the response's body.
    pub body: String,
    /// Why there is no response.
    pub error: Option<String>,
    /// Duration in milliseconds.
    pub latency_ms: u64,
}

impl PostTarget {
    /// Creates the target for an address of a flag. Requests have no credentials and are sent once.
    pub fn new(flag: &str, address: &str, timeout: Duration, observer: Option<Observer>) -> Result<Self> {
        let wrong = |why: &str| {
            CliError::usage(format!("{flag}: `{address}` {why}"))
                .hint(format!("for example {flag} http://127.0.0.1:3000/hook"))
        };
        let mut base = Url::parse(address).map_err(|_| wrong("is not a URL"))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(wrong("does not begin with http:// or https://"));
        }
        let path = base[Position::BeforePath..Position::AfterQuery].to_owned();
        base.set_path("/");
        let mut options = Options::new(base);
        options.timeout = timeout;
        options.retry = Retry::NEVER;
        options.observer = observer;
        Ok(Self { client: Client::new(options)?, path })
    }

    /// Posts a JSON body and waits for the response.
    pub async fn post(&self, headers: &Headers, body: &[u8]) -> PostResult {
        // The call counts as repeatable, so that the client adds no header for repeated requests.
        let mut call = Call::<Value>::post(&self.path).with(Auth::None).repeatable();
        call.headers.clone_from(headers);
        call.body = Body::Bytes { content_type: "application/json", bytes: body.to_vec() };
        let start = Instant::now();
        let sent = self.client.send(&call).await;
        let latency_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (status, body, error) = match sent {
            Ok(response) => (response.status, String::from_utf8_lossy(&response.body).into_owned(), None),
            Err(Error::Response(response)) => (response.status, response.text, None),
            Err(error) => (0, String::new(), Some(error.cause())),
        };
        PostResult { status, body: body.chars().take(MAX_RESPONSE_CHARS).collect(), error, latency_ms }
    }
}

impl PostResult {
    /// Returns whether the receiver accepted the delivery.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Returns a sentence about the response of a receiver that did not accept a delivery.
pub fn failure(status: u16, error: Option<&str>) -> String {
    match (status, error) {
        (0, Some(why)) => format!("the receiver could not be reached: {why}"),
        (0, None) => "the receiver could not be reached".to_owned(),
        (300..=399, _) => format!("the receiver returned status {status}; redirects are not followed"),
        _ => format!("the receiver returned status {status}"),
    }
}
