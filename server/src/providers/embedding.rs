//! Vectors of texts, from a provider that speaks OpenAI's protocol.
//!
//! The platform's provider is the operator's own choice and is asked like any other service of
//! theirs. A tenant's is reached through [`Egress`]. Whatever either answers costs a bounded time
//! and a bounded number of bytes.

mod failure;
mod wire;

use std::{fmt, time::Duration};

use anyhow::Context;
use hyper::{
    HeaderMap, Method, StatusCode,
    body::Bytes,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT},
};
use url::Url;

pub use failure::Failure;

use super::{Egress, Outbound, SendError};
use crate::search::UnitVector;

/// Where OpenAI answers.
const OPENAI: &str = "https://api.openai.com/v1";

/// Who asks.
const AGENT: &str = concat!("loupe-server/", env!("CARGO_PKG_VERSION"));

/// Bytes of an answer that are read for each text: 1,536 numbers in decimals are some 35 KiB.
const BYTES_A_TEXT: usize = 128 * 1024;

/// Bytes of an answer that are read in any case.
const BYTES: usize = 64 * 1024;

/// A provider with a key and a model. It does not print its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Up to the part before `/embeddings`, without a slash at its end; none is OpenAI's.
    pub base_url: Option<String>,
    /// Empty for a provider that needs none.
    pub key: String,
    /// The model.
    pub model: String,
    /// A tenant set the address.
    pub guarded: bool,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base_url, key: _, model, guarded } = self;
        let mut shown = formatter.debug_struct("Endpoint");
        shown
            .field("base_url", base_url)
            .field("model", model)
            .field("guarded", guarded)
            .finish_non_exhaustive()
    }
}

/// Asks providers for vectors.
pub struct EmbeddingClient {
    egress: Egress,
    http: reqwest::Client,
}

/// What came back, by whichever way.
struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    truncated: bool,
}

impl EmbeddingClient {
    /// A client that reaches tenants' addresses through `egress`.
    ///
    /// # Errors
    /// When there are no authorities for TLS.
    pub fn new(egress: Egress) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            // A key goes where it was meant to go, and nowhere else.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(5))
            .build()
            .context("can't make a client for the embedding provider")?;
        Ok(Self { egress, http })
    }

    /// The vectors of these texts in their order, within `timeout`. `now` is in microseconds.
    ///
    /// # Errors
    /// When there are none, with what helps.
    pub async fn embed(
        &self,
        endpoint: &Endpoint,
        texts: &[&str],
        timeout: Duration,
        now: i64,
    ) -> Result<Vec<UnitVector>, Failure> {
        let most = BYTES + texts.len() * BYTES_A_TEXT;
        let reply = self.ask(endpoint, wire::request(&endpoint.model, texts), timeout, most).await?;
        if reply.status != StatusCode::OK {
            return Err(Failure::of(reply.status, &reply.headers, &reply.body, &endpoint.key, now));
        }
        if reply.truncated {
            return Err(Failure::Unusable(format!("it answered more than {most} bytes")));
        }
        wire::vectors(&reply.body, texts.len()).map_err(Failure::Unusable)
    }

    async fn ask(
        &self,
        endpoint: &Endpoint,
        body: Vec<u8>,
        timeout: Duration,
        max_body: usize,
    ) -> Result<Reply, Failure> {
        let address = format!("{}/embeddings", endpoint.base_url.as_deref().unwrap_or(OPENAI));
        let url: Url =
            address.parse().map_err(|_| Failure::Denied("its address can't be read".to_owned()))?;
        let headers = headers(&endpoint.key)?;
        if endpoint.guarded {
            let body = body.into();
            let sent = Outbound { method: Method::POST, url, headers, body, timeout, max_body };
            let answer = self.egress.send(sent).await.map_err(|it| unreached(&it))?;
            let super::Answer { status, headers, body, truncated, took: _ } = answer;
            return Ok(Reply { status, headers, body, truncated });
        }
        let sent = self.http.post(url).headers(headers).body(body).timeout(timeout).send().await;
        read(sent.map_err(failed)?, max_body).await
    }
}

/// Reads an answer of the operator's provider up to `most` bytes.
async fn read(mut answer: reqwest::Response, most: usize) -> Result<Reply, Failure> {
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

fn headers(key: &str) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    let json = HeaderValue::from_static("application/json");
    headers.insert(CONTENT_TYPE, json.clone());
    headers.insert(ACCEPT, json);
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    if !key.is_empty() {
        let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
            .map_err(|_| Failure::Denied("its key can't be sent".to_owned()))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

fn unreached(error: &SendError) -> Failure {
    match error {
        SendError::Refused(_) => Failure::Denied(error.to_string()),
        _ => Failure::passing(error.to_string()),
    }
}

fn failed(error: reqwest::Error) -> Failure {
    if error.is_timeout() {
        return Failure::passing(SendError::Timeout.to_string());
    }
    Failure::passing(super::root_cause(&error.without_url()))
}
