//! Calls judge models: one request, one reply, with OpenAI's or Anthropic's protocol.
//!
//! Services and models differ in their structured-output modes; a [`RequestFeatures`] selects the mode, and an
//! error about it ([`JudgeProviderFailure::UnsupportedFeature`]) names the feature to omit. `evaluators::judge` builds prompts and
//! parses replies; [`crate::judging`] retries.

pub(super) mod anthropic;
mod failure;
pub(super) mod openai;
mod request_features;

use std::{fmt, time::Duration};

use api::credential::Provider;
use outbound::{AddressOwner, OutboundClient, StatusCode, Url};
use semantics::usage::Usage;
use serde_json::Value;

pub use failure::{InvalidReply, JudgeProviderFailure};
pub use request_features::{OutputMode, RequestFeature, RequestFeatures, TokenLimitName};

use super::{OPENAI, json_post::JsonPost};

/// Anthropic's base URL.
const ANTHROPIC_URL: &str = "https://api.anthropic.com";

/// Maximum number of bytes of a response. A verdict takes a hundredth of it; reasoning models may need
/// more.
const MAX_RESPONSE_BYTES: usize = 256 * 1024;

/// The name of the verdict's schema or tool.
const VERDICT_NAME: &str = "verdict";

/// The description of the verdict's tool.
const VERDICT_DESCRIPTION: &str = "Submits the verdict: the reasoning, then the result.";

/// A provider with a key and a model. Its `Debug` output omits the key.
#[derive(Clone, PartialEq, Eq)]
pub struct JudgeEndpoint {
    /// The protocol.
    pub provider: Provider,
    /// The base URL, without a trailing slash; default: the provider's own.
    pub base_url: Option<String>,
    /// Empty for a provider without authentication.
    pub key: String,
    /// The model.
    pub model: String,
    /// The party that set the address.
    pub set_by: AddressOwner,
}

impl fmt::Debug for JudgeEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, base_url, key: _, model, set_by } = self;
        let mut shown = formatter.debug_struct("JudgeEndpoint");
        shown
            .field("provider", provider)
            .field("base_url", base_url)
            .field("model", model)
            .field("set_by", set_by)
            .finish_non_exhaustive()
    }
}

/// The messages sent to a judge, with the schema of the reply.
#[derive(Clone, Copy, Debug)]
pub struct JudgePrompt<'a> {
    /// The instructions.
    pub system: &'a str,
    /// The messages after the instructions, alternating between user and judge; the first and the last are
    /// the user's.
    pub messages: &'a [String],
    /// JSON Schema of the reply.
    pub schema: &'a Value,
    /// Maximum number of tokens of the reply.
    pub max_tokens: u32,
}

/// A judge's reply.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgeReply {
    /// The text, or the arguments of the requested tool call.
    pub text: String,
    /// Whether the reply was truncated at the token limit.
    pub is_cut: bool,
    /// The provider's explanation, if the model declined to reply.
    pub declined: Option<String>,
    /// The token usage.
    pub usage: Usage,
}

/// Calls judges.
pub struct JudgeClient(OutboundClient);

impl JudgeClient {
    /// Creates a client that sends through `outbound`.
    pub fn new(outbound: OutboundClient) -> Self {
        Self(outbound)
    }

    /// Sends one request. `now` is in microseconds.
    ///
    /// # Errors
    ///
    /// Fails with the kind of failure when there is no reply.
    pub async fn send(
        &self,
        endpoint: &JudgeEndpoint,
        prompt: &JudgePrompt<'_>,
        features: RequestFeatures,
        timeout: Duration,
        now: i64,
    ) -> Result<JudgeReply, JudgeProviderFailure> {
        let is_anthropic = endpoint.provider == Provider::Anthropic;
        let body = match is_anthropic {
            true => anthropic::request(endpoint, prompt, features),
            false => openai::request(endpoint, prompt, features),
        };
        let limits = ExchangeLimits { timeout, max_response_bytes: MAX_RESPONSE_BYTES };
        let body = exchange(&self.0, endpoint, &body, limits, now).await?;
        let parsed = if is_anthropic { anthropic::parse_reply(&body) } else { openai::parse_reply(&body) };
        parsed.map_err(|invalid| invalid.into_failure(endpoint))
    }
}

/// The limits of a request to a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExchangeLimits {
    /// Timeout of everything, from name resolution to the end of the response.
    pub(super) timeout: Duration,
    /// Maximum number of bytes of the response.
    pub(super) max_response_bytes: usize,
}

/// Sends a body in the protocol of the endpoint's provider. Returns the JSON of a response with status 200.
pub(super) async fn exchange(
    client: &OutboundClient,
    endpoint: &JudgeEndpoint,
    body: &Value,
    limits: ExchangeLimits,
    now: i64,
) -> Result<Value, JudgeProviderFailure> {
    let (address, headers) = if endpoint.provider == Provider::Anthropic {
        let base = endpoint.base_url.as_deref().unwrap_or(ANTHROPIC_URL);
        // Some users include the version in the address, as in OpenAI's.
        let address = format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base));
        (address, anthropic::headers(&endpoint.key))
    } else {
        let base = endpoint.base_url.as_deref().unwrap_or(OPENAI);
        (format!("{base}/chat/completions"), openai::headers(&endpoint.key))
    };
    let url: Url = address.parse().map_err(|_| JudgeProviderFailure::denied("its address is invalid"))?;
    let headers = headers
        .ok_or_else(|| JudgeProviderFailure::denied("its key contains characters that can't be sent"))?;
    let body = body.to_string().into_bytes();
    let ExchangeLimits { timeout, max_response_bytes } = limits;
    let post = JsonPost { url, set_by: endpoint.set_by, headers, timeout, max_body: max_response_bytes };
    let reply = client.send(post.with_body(body)).await.map_err(|it| JudgeProviderFailure::unreached(&it))?;
    if reply.status != StatusCode::OK {
        let key = &endpoint.key;
        return Err(JudgeProviderFailure::of(reply.status, &reply.headers, &reply.body, key, now));
    }
    let body = reply.complete().map_err(|it| JudgeProviderFailure::InvalidResponse(it.to_string()))?;
    serde_json::from_slice(body).map_err(|_| {
        JudgeProviderFailure::InvalidResponse("its response is not JSON: is its address correct?".to_owned())
    })
}

/// Returns the schema without bounds, which some structured-output modes reject; the parser of the
/// reply checks them in any case.
fn without_bounds(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !matches!(name.as_str(), "minimum" | "maximum"));
            Value::Object(kept.map(|(name, it)| (name.clone(), without_bounds(it))).collect())
        }
        other => other.clone(),
    }
}

/// Returns a token count of a response.
pub(super) fn count(usage: &Value, pointer: &str) -> Option<i64> {
    usage.pointer(pointer).and_then(Value::as_i64).filter(|it| *it >= 0)
}
