//! Requests vectors from a provider with OpenAI's protocol.

mod failure;
mod wire;

use std::{fmt, time::Duration};

use outbound::{
    AddressOwner, HeaderMap, OutboundClient, OutboundResponse, SendError, StatusCode, Url,
    header::AUTHORIZATION,
};
use store::vectors::UnitVector;

pub use failure::EmbeddingFailure;

use super::{
    OPENAI,
    json_post::{JsonPost, key_header},
};

/// Maximum bytes of a response per text: 1,536 decimal numbers take about 35 KiB.
const RESPONSE_BYTES_PER_TEXT: usize = 128 * 1024;

/// Maximum bytes of a response in addition.
const BASE_RESPONSE_BYTES: usize = 64 * 1024;

/// The URL, key and model of an embedding provider. `Debug` prints no key.
#[derive(Clone, PartialEq, Eq)]
pub struct EmbeddingEndpoint {
    /// The part of the URL before `/embeddings`, without a trailing slash; default: OpenAI's.
    pub base_url: Option<String>,
    /// Empty for a provider without authentication.
    pub key: String,
    /// The model.
    pub model: String,
    /// The party that set the address.
    pub set_by: AddressOwner,
}

impl fmt::Debug for EmbeddingEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base_url, key: _, model, set_by } = self;
        let mut shown = formatter.debug_struct("EmbeddingEndpoint");
        shown
            .field("base_url", base_url)
            .field("model", model)
            .field("set_by", set_by)
            .finish_non_exhaustive()
    }
}

/// Requests vectors from providers.
pub struct EmbeddingClient(OutboundClient);

impl EmbeddingClient {
    /// Creates a client that sends through `outbound`.
    pub fn new(outbound: OutboundClient) -> Self {
        Self(outbound)
    }

    /// Returns the vectors of these texts in their order, within `timeout`. `now` is in microseconds.
    ///
    /// # Errors
    ///
    /// Fails with the kind of failure when there are no vectors.
    pub async fn embed(
        &self,
        endpoint: &EmbeddingEndpoint,
        texts: &[&str],
        timeout: Duration,
        now: i64,
    ) -> Result<Vec<UnitVector>, EmbeddingFailure> {
        let max_body = BASE_RESPONSE_BYTES + texts.len() * RESPONSE_BYTES_PER_TEXT;
        let reply = self.send(endpoint, wire::request(&endpoint.model, texts), timeout, max_body).await?;
        if reply.status != StatusCode::OK {
            return Err(EmbeddingFailure::of(reply.status, &reply.headers, &reply.body, &endpoint.key, now));
        }
        let body = reply.complete().map_err(|it| EmbeddingFailure::InvalidResponse(it.to_string()))?;
        wire::vectors(body, texts.len()).map_err(EmbeddingFailure::InvalidResponse)
    }

    async fn send(
        &self,
        endpoint: &EmbeddingEndpoint,
        body: Vec<u8>,
        timeout: Duration,
        max_body: usize,
    ) -> Result<OutboundResponse, EmbeddingFailure> {
        let address = format!("{}/embeddings", endpoint.base_url.as_deref().unwrap_or(OPENAI));
        let url: Url =
            address.parse().map_err(|_| EmbeddingFailure::Denied("its address is invalid".to_owned()))?;
        let (set_by, headers) = (endpoint.set_by, headers(&endpoint.key)?);
        let post = JsonPost { url, set_by, headers, timeout, max_body };
        self.0.send(post.with_body(body)).await.map_err(|it| of_send_error(&it))
    }
}

fn headers(key: &str) -> Result<HeaderMap, EmbeddingFailure> {
    let mut headers = HeaderMap::new();
    if !key.is_empty() {
        let value = key_header(&format!("Bearer {key}")).ok_or_else(|| {
            EmbeddingFailure::Denied("its key contains characters that can't be sent".to_owned())
        })?;
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

fn of_send_error(error: &SendError) -> EmbeddingFailure {
    match error {
        SendError::AddressRejected(_) => EmbeddingFailure::Denied(error.to_string()),
        _ => EmbeddingFailure::temporary(error.to_string()),
    }
}
