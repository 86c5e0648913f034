//! Repeats a recorded request to a model, with OpenAI's or Anthropic's protocol: one request, one reply.
//!
//! A request has the form of OpenAI's protocol, in which most applications record it.

mod anthropic;
mod openai;

use std::time::Duration;

use api::credential::Provider;
use outbound::OutboundClient;
use semantics::usage::Usage;
use serde_json::{Map, Value, json};

use super::judge::{ExchangeLimits, JudgeEndpoint, JudgeProviderFailure, exchange};

/// Maximum number of bytes of a response.
const MAX_RESPONSE_BYTES: usize = 4 * 1024 * 1024;

/// A request to a model, in the form of OpenAI's protocol.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    /// The messages, with roles.
    pub messages: Vec<Value>,
    /// The tools that the model may call. They are not executed.
    pub tools: Vec<Value>,
    /// The other parameters, such as `temperature`.
    pub parameters: Map<String, Value>,
}

/// A reply of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatReply {
    /// The text, or the message as JSON if it has tool calls.
    pub output: String,
    /// The model that replied.
    pub model: Option<String>,
    /// The token usage.
    pub usage: Usage,
    /// The cost in US dollars, if the reply states it.
    pub cost: Option<f64>,
}

/// Sends a request. `now` is in microseconds.
///
/// # Errors
///
/// Fails with the kind of failure when there is no reply with an output.
pub async fn send(
    client: &OutboundClient,
    endpoint: &JudgeEndpoint,
    request: &ChatRequest,
    timeout: Duration,
    now: i64,
) -> Result<ChatReply, JudgeProviderFailure> {
    let is_anthropic = endpoint.provider == Provider::Anthropic;
    let body = match is_anthropic {
        true => anthropic::request(&endpoint.model, request),
        false => openai::request(&endpoint.model, request),
    };
    let limits = ExchangeLimits { timeout, max_response_bytes: MAX_RESPONSE_BYTES };
    let body = exchange(client, endpoint, &body, limits, now).await?;
    let parsed = if is_anthropic { anthropic::parse_reply(&body) } else { openai::parse_reply(&body) };
    parsed.map_err(|invalid| invalid.into_failure(endpoint))
}

/// Returns the output of a message: its text, or the message as JSON if it calls tools.
fn output(text: String, calls: Vec<Value>) -> String {
    match calls.is_empty() {
        true => text,
        false => {
            let content = if text.is_empty() { Value::Null } else { text.into() };
            json!([{"role": "assistant", "content": content, "tool_calls": calls}]).to_string()
        }
    }
}
