//! `POST /v1/messages` of Anthropic's protocol: builds requests and parses responses. Pure.

use outbound::{
    HeaderMap,
    header::{HeaderName, HeaderValue},
};
use semantics::usage::Usage;
use serde_json::{Map, Value, json};

use super::{
    InvalidReply, JudgeEndpoint, JudgePrompt, JudgeReply, OutputMode, RequestFeatures, VERDICT_DESCRIPTION,
    VERDICT_NAME, count, without_bounds,
};
use crate::providers::json_post::key_header;

/// The version of the protocol.
const PROTOCOL_VERSION: &str = "2023-06-01";

/// Returns the authentication headers; `None` if the key is not a valid header value.
pub fn headers(key: &str) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(PROTOCOL_VERSION));
    if !key.is_empty() {
        headers.insert(HeaderName::from_static("x-api-key"), key_header(key)?);
    }
    Some(headers)
}

/// Returns the request body.
pub fn request(endpoint: &JudgeEndpoint, prompt: &JudgePrompt<'_>, features: RequestFeatures) -> Value {
    let role = |index: usize| if index.is_multiple_of(2) { "user" } else { "assistant" };
    let numbered = prompt.messages.iter().enumerate();
    let messages: Vec<Value> =
        numbered.map(|(at, text)| json!({"role": role(at), "content": text})).collect();
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(endpoint.model));
    body.insert("max_tokens".to_owned(), json!(prompt.max_tokens));
    body.insert("system".to_owned(), json!(prompt.system));
    body.insert("messages".to_owned(), Value::Array(messages));
    if features.temperature {
        body.insert("temperature".to_owned(), json!(0));
    }
    match features.output_mode {
        OutputMode::Schema => {
            let format = json!({"type": "json_schema", "schema": without_bounds(prompt.schema)});
            body.insert("output_config".to_owned(), json!({"format": format}));
        }
        OutputMode::Tool => {
            let tool = json!({"name": VERDICT_NAME, "description": VERDICT_DESCRIPTION, "input_schema": prompt.schema});
            body.insert("tools".to_owned(), json!([tool]));
            body.insert("tool_choice".to_owned(), json!({"type": "tool", "name": VERDICT_NAME}));
        }
        OutputMode::Json | OutputMode::Text => {}
    }
    Value::Object(body)
}

/// Parses a response.
///
/// # Errors
///
/// Fails when it contains no reply.
pub fn parse_reply(body: &Value) -> Result<JudgeReply, InvalidReply> {
    let Some(blocks) = body.get("content").and_then(Value::as_array) else {
        return Err(match body.get("error").filter(|it| !it.is_null()) {
            Some(_) => InvalidReply::Error(body.clone()),
            None => InvalidReply::OtherProtocol(
                "its response has no content: does it support Anthropic's protocol?",
            ),
        });
    };
    let call = blocks.iter().find(|it| it["type"] == "tool_use").and_then(|it| it.get("input"));
    let text = match call {
        Some(input) => input.to_string(),
        // Reasoning has blocks of another type.
        None => {
            blocks.iter().filter(|it| it["type"] == "text").filter_map(|it| it["text"].as_str()).collect()
        }
    };
    let reason = body.get("stop_reason").and_then(Value::as_str).unwrap_or_default();
    let declined = (reason == "refusal").then(|| "the model declined to reply".to_owned());
    let is_cut = matches!(reason, "max_tokens" | "model_context_window_exceeded");
    Ok(JudgeReply { text, is_cut, declined, usage: usage(&body["usage"]) })
}

/// Returns the token counts of a response.
pub(in crate::providers) fn usage(usage: &Value) -> Usage {
    Usage {
        prompt: count(usage, "/input_tokens"),
        completion: count(usage, "/output_tokens"),
        cached: count(usage, "/cache_read_input_tokens"),
        cache_write: count(usage, "/cache_creation_input_tokens"),
        reasoning: None,
        cached_in_prompt: false,
    }
}

#[cfg(test)]
mod tests {
    use api::credential::Provider;
    use outbound::AddressOwner;

    use super::*;

    fn sent(output_mode: OutputMode) -> Value {
        let endpoint = JudgeEndpoint {
            provider: Provider::Anthropic,
            base_url: None,
            key: String::new(),
            model: "m".to_owned(),
            set_by: AddressOwner::Operator,
        };
        let messages = ["one", "two", "three"].map(str::to_owned);
        let schema = json!({"properties": {"score": {"type": "number", "minimum": 0, "maximum": 1}}});
        let prompt = JudgePrompt { system: "s", messages: &messages, schema: &schema, max_tokens: 9 };
        request(
            &endpoint,
            &prompt,
            RequestFeatures { output_mode, ..RequestFeatures::first(Provider::Anthropic) },
        )
    }

    #[test]
    fn anthropic_request_has_form_of_each_output_mode() {
        let body = sent(OutputMode::Schema);
        let score = &body["output_config"]["format"]["schema"]["properties"]["score"];
        assert_eq!(score, &json!({"type": "number"}), "bounds are rejected there");
        assert_eq!(
            (&body["max_tokens"], &body["system"], &body["temperature"]),
            (&json!(9), &json!("s"), &json!(0))
        );
        assert_eq!(body["messages"][1], json!({"role": "assistant", "content": "two"}));
        let body = sent(OutputMode::Tool);
        assert_eq!(body["tool_choice"], json!({"type": "tool", "name": VERDICT_NAME}));
        assert_eq!(body["tools"][0]["input_schema"]["properties"]["score"]["maximum"], 1);
        assert_eq!(sent(OutputMode::Text).get("tools"), None);
    }

    #[test]
    fn anthropic_reply_is_found_in_any_block() {
        let text = |content: Value| parse_reply(&json!({"content": content})).unwrap().text;
        let thinking = json!({"type": "thinking", "thinking": "hm", "text": "hm"});
        assert_eq!(text(json!([thinking, {"type": "text", "text": "a"}])), "a");
        let call = json!({"type": "tool_use", "name": "verdict", "input": {"score": 1}});
        assert_eq!(text(json!([{"type": "text", "text": "a"}, call])), r#"{"score":1}"#);
        assert_eq!(text(json!([])), "");
    }

    #[test]
    fn anthropic_response_without_reply_is_classified() {
        let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "x"}});
        assert!(matches!(parse_reply(&error), Err(InvalidReply::Error(_))));
        for body in [json!({}), json!([]), json!({"content": "a"}), json!(1)] {
            assert!(matches!(parse_reply(&body), Err(InvalidReply::OtherProtocol(_))), "{body}");
        }
        let usage = json!({"input_tokens": 3, "output_tokens": -1, "cache_read_input_tokens": 2});
        let cut = parse_reply(&json!({"content": [], "stop_reason": "max_tokens", "usage": usage})).unwrap();
        assert_eq!((cut.is_cut, cut.usage.prompt, cut.usage.completion), (true, Some(3), None));
        assert_eq!(cut.usage.cached, Some(2));
        let refused = parse_reply(&json!({"content": [], "stop_reason": "refusal"})).unwrap();
        assert!(refused.declined.is_some());
    }
}
