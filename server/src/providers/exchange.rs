//! One request to a provider of models, by either of two ways.
//!
//! The platform's provider is the operator's own choice and is asked like any other service of
//! theirs. A tenant's is reached through [`Egress`]. Whatever either answers costs a bounded time
//! and a bounded number of bytes.

use std::time::Duration;

use anyhow::Context;
use hyper::{
    HeaderMap, Method, StatusCode,
    body::Bytes,
    header::{ACCEPT, CONTENT_TYPE, HeaderValue, USER_AGENT},
};
use url::Url;

use super::{Answer, Egress, Outbound, SendError, root_cause};

/// Who asks.
const AGENT: &str = concat!("loupe-server/", env!("CARGO_PKG_VERSION"));

/// Sends requests to providers.
pub struct Exchange {
    egress: Egress,
    http: reqwest::Client,
    /// The client for services on this machine, which a network proxy can't reach.
    local: reqwest::Client,
}

/// A `POST` of JSON. It does not print: its headers hold a key.
pub struct Post {
    /// Where to.
    pub url: Url,
    /// A tenant set the address.
    pub guarded: bool,
    /// What says who asks: see [`key_header`].
    pub headers: HeaderMap,
    /// The JSON.
    pub body: Vec<u8>,
    /// For everything, from the name to the end of the answer.
    pub timeout: Duration,
    /// Bytes of the answer that are read, at most.
    pub max_body: usize,
}

/// What came back, by whichever way and of whatever status.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, or the beginning of it.
    pub body: Bytes,
    /// Whether there was more of it.
    pub truncated: bool,
}

impl Exchange {
    /// One that reaches tenants' addresses through `egress`.
    ///
    /// # Errors
    /// When there are no authorities for TLS.
    pub fn new(egress: Egress) -> anyhow::Result<Self> {
        let builder = || {
            reqwest::Client::builder()
                // Redirects are off, so that a key is sent to the configured address only.
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(Duration::from_secs(5))
        };
        let failed = "can't make a client for providers of models";
        let http = builder().build().context(failed)?;
        let local = builder().no_proxy().build().context(failed)?;
        Ok(Self { egress, http, local })
    }

    /// Sends a request and reads the answer.
    ///
    /// # Errors
    /// When there is no complete answer; by both ways in the same words.
    pub async fn post(&self, post: Post) -> Result<Reply, SendError> {
        let Post { url, guarded, mut headers, body, timeout, max_body } = post;
        let json = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, json.clone());
        headers.insert(ACCEPT, json);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if guarded {
            let body = body.into();
            let sent = Outbound { method: Method::POST, url, headers, body, timeout, max_body };
            let Answer { status, headers, body, truncated, took: _ } = self.egress.send(sent).await?;
            return Ok(Reply { status, headers, body, truncated });
        }
        let client = if is_loopback(&url) { &self.local } else { &self.http };
        let sent = client.post(url).headers(headers).body(body).timeout(timeout).send().await;
        read(sent.map_err(failed)?, max_body).await
    }
}

/// Returns whether an address is on this machine.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// A header that holds a key, marked so that nothing prints it; none if the key can't stand there.
pub fn key_header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Reads an answer of the operator's provider up to `most` bytes.
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

/// What went wrong, in the words of the guarded way. The address, which may hold something that is
/// nobody's business, is left out.
fn failed(error: reqwest::Error) -> SendError {
    if error.is_timeout() {
        return SendError::Timeout;
    }
    let (connect, why) = (error.is_connect(), root_cause(&error.without_url()));
    if connect { SendError::Connect(why) } else { SendError::Broken(why) }
}
