//! Executes an action through the tenant's own address: a signed request with the rebuilt request, whose response has the
//! output.

use std::time::Duration;

use api::control::ActionType;
use entities::control_action;
use outbound::{AddressOwner, Method, OutboundClient, OutboundRequest, Url};
use semantics::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{
    providers::{
        chat::{ChatReply, ChatRequest},
        judge::JudgeProviderFailure,
    },
    webhooks::headers::{SignedMessage, signed_headers},
};

/// The value of the header `X-Service-Event`.
const CALLBACK_EVENT: &str = "control_action.execute";
/// Maximum number of bytes of a response.
const MAX_RESPONSE_BYTES: usize = 4 * 1024 * 1024;

/// The address and the secret of a callback. It cannot be formatted, so that no secret is logged.
pub struct CallbackTarget {
    /// The address.
    pub url: Url,
    /// The secret.
    pub secret: String,
}

/// The body of a request.
#[derive(Serialize)]
struct CallbackRequest<'a> {
    action_id: Uuid,
    action_type: &'a str,
    attempt: i32,
    project_id: Uuid,
    trace_id: Uuid,
    span_id: Option<Uuid>,
    model: Option<&'a str>,
    messages: &'a [Value],
    tools: &'a [Value],
    parameters: &'a Map<String, Value>,
}

/// The body of a response.
#[derive(Deserialize)]
struct CallbackResponse {
    output: Value,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    prompt_tokens: Option<i64>,
    #[serde(default)]
    completion_tokens: Option<i64>,
    #[serde(default)]
    cost_usd: Option<f64>,
}

/// Sends the request of an action at `now` (microseconds). Every attempt has the ID of the action as message ID.
///
/// # Errors
///
/// Fails with the kind of failure when there is no output.
pub async fn send(
    client: &OutboundClient,
    target: &CallbackTarget,
    action: &control_action::Model,
    model: Option<&str>,
    request: &ChatRequest,
    timeout: Duration,
    now: i64,
) -> Result<ChatReply, JudgeProviderFailure> {
    let ChatRequest { messages, tools, parameters } = request;
    let is_fallback = action.requested_type == ActionType::FallbackModel.as_str();
    debug_assert!(!is_fallback || model.is_some(), "a fallback names its model");
    let body = CallbackRequest {
        action_id: action.id,
        action_type: &action.requested_type,
        attempt: action.attempts,
        project_id: action.project_id,
        trace_id: action.trace_id,
        span_id: action.span_id,
        model,
        messages,
        tools,
        parameters,
    };
    let body =
        serde_json::to_vec(&body).map_err(|_| JudgeProviderFailure::denied("the request is not JSON"))?;
    let message = SignedMessage { id: action.id, event: CALLBACK_EVENT, delivery: action.id, body: &body };
    let request = OutboundRequest {
        method: Method::POST,
        url: target.url.clone(),
        set_by: AddressOwner::Tenant,
        headers: signed_headers(&target.secret, None, &message, now),
        body: body.into(),
        timeout,
        max_body: MAX_RESPONSE_BYTES,
    };
    let reply = client.send(request).await.map_err(|it| JudgeProviderFailure::unreached(&it))?;
    if !reply.status.is_success() {
        let (headers, body) = (&reply.headers, &reply.body);
        return Err(JudgeProviderFailure::of(reply.status, headers, body, &target.secret, now));
    }
    let body = reply.complete().map_err(|it| JudgeProviderFailure::InvalidResponse(it.to_string()))?;
    parse(body).map_err(|it| JudgeProviderFailure::InvalidResponse(it.to_owned()))
}

fn parse(body: &[u8]) -> Result<ChatReply, &'static str> {
    let response: CallbackResponse =
        serde_json::from_slice(body).map_err(|_| "its response is not a JSON object with an output")?;
    let output = match response.output {
        Value::Null => return Err("its response has no output"),
        Value::String(text) => text,
        other => other.to_string(),
    };
    let count = |it: Option<i64>| it.filter(|it| *it >= 0);
    let (prompt, completion) = (count(response.prompt_tokens), count(response.completion_tokens));
    let usage = Usage { prompt, completion, ..Usage::default() };
    let cost = response.cost_usd.filter(|it| it.is_finite() && *it >= 0.0);
    Ok(ChatReply { output, model: response.model, usage, cost })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_has_an_output_and_may_have_usage() {
        let parsed = |body: &str| parse(body.as_bytes()).map(|it| (it.output, it.usage.prompt, it.cost));
        assert_eq!(parsed(r#"{"output": "Hello"}"#), Ok(("Hello".to_owned(), None, None)));
        assert_eq!(
            parsed(r#"{"output": {"a": 1}, "prompt_tokens": 3, "cost_usd": 0.5}"#),
            Ok((r#"{"a":1}"#.to_owned(), Some(3), Some(0.5)))
        );
        assert_eq!(
            parsed(r#"{"output": "", "prompt_tokens": -3, "cost_usd": -1}"#),
            Ok((String::new(), None, None))
        );
        for invalid in ["", "[]", "{}", r#"{"output": null}"#, r#"{"output": "a", "prompt_tokens": "b"}"#] {
            assert!(parsed(invalid).is_err(), "{invalid}");
        }
    }
}
