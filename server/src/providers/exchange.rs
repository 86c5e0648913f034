//! One request to a model provider.
//!
//! The platform's provider is configured by the operator and called directly. A tenant's is called
//! through [`Egress`]. In both cases time and size of the response are bounded.

use std::time::Duration;

use anyhow::Context;
use hyper::{
    HeaderMap, Method, StatusCode,
    body::Bytes,
    header::{ACCEPT, CONTENT_TYPE, HeaderValue, USER_AGENT},
};
use url::Url;

use super::{Egress, Outbound, OutboundResponse, SendError, root_cause};

/// The `User-Agent` header.
const USER_AGENT_VALUE: &str = concat!("loupe-server/", env!("CARGO_PKG_VERSION"));

/// Sends requests to providers.
pub struct Exchange {
    egress: Egress,
    http: reqwest::Client,
    /// The client for services on this machine, which a network proxy can't reach.
    local: reqwest::Client,
}

/// A `POST` of JSON. It can't be formatted, because its headers contain a key.
pub struct Post {
    /// The URL.
    pub url: Url,
    /// Whether a tenant set the address.
    pub guarded: bool,
    /// The headers that authenticate: see [`key_header`].
    pub headers: HeaderMap,
    /// The JSON body.
    pub body: Vec<u8>,
    /// Timeout of everything, from name resolution to the end of the response.
    pub timeout: Duration,
    /// Maximum number of bytes of the response that are read.
    pub max_body: usize,
}

/// A response of any status.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, possibly truncated.
    pub body: Bytes,
    /// Whether the body was truncated.
    pub truncated: bool,
}

impl Exchange {
    /// Creates an exchange that reaches tenants' addresses through `egress`.
    ///
    /// # Errors
    ///
    /// Fails when there are no certificate authorities.
    pub fn new(egress: Egress) -> anyhow::Result<Self> {
        let builder = || {
            reqwest::Client::builder()
                // Redirects are disabled, so that a key is sent to the configured address only.
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(Duration::from_secs(5))
        };
        let failed = "can't create the HTTP client for model providers";
        let http = builder().build().context(failed)?;
        let local = builder().no_proxy().build().context(failed)?;
        Ok(Self { egress, http, local })
    }

    /// Sends a request and reads the response.
    ///
    /// # Errors
    ///
    /// Fails when there is no complete response; with the same messages for both clients.
    pub async fn post(&self, post: Post) -> Result<Reply, SendError> {
        let Post { url, guarded, mut headers, body, timeout, max_body } = post;
        let json = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, json.clone());
        headers.insert(ACCEPT, json);
        headers.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_VALUE));
        if guarded {
            let body = body.into();
            let sent = Outbound { method: Method::POST, url, headers, body, timeout, max_body };
            let OutboundResponse { status, headers, body, truncated, took: _ } =
                self.egress.send(sent).await?;
            return Ok(Reply { status, headers, body, truncated });
        }
        let client = if is_loopback(&url) { &self.local } else { &self.http };
        let sent = client.post(url).headers(headers).body(body).timeout(timeout).send().await;
        read(sent.map_err(failed)?, max_body).await
    }
}

/// Whether an address is on this machine.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Returns a header with a key, marked as sensitive so that it is never formatted; `None` if the key is
/// not a valid header value.
pub fn key_header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Reads a response of the operator's provider up to `most` bytes.
async fn read(mut answer: reqwest::Response, most: usize) -> Result<Reply, SendError> {
    let (status, headers) = (answer.status(), std::mem::take(answer.headers_mut()));
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(failed)? {
        let room = most - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            return Ok(Reply { status, headers, body: body.into(), truncated: true });
        }
    }
    Ok(Reply { status, headers, body: body.into(), truncated: false })
}

/// Converts an error to those of [`Egress`]. The address, which may contain a secret, is omitted.
fn failed(error: reqwest::Error) -> SendError {
    if error.is_timeout() {
        return SendError::Timeout;
    }
    let (connect, why) = (error.is_connect(), root_cause(&error.without_url()));
    if connect { SendError::Connect(why) } else { SendError::Broken(why) }
}
