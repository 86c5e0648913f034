//! `POST /chat/completions` of OpenAI's protocol: builds requests and parses responses. Pure.

use outbound::{HeaderMap, header::AUTHORIZATION};
use semantics::usage::Usage;
use serde_json::{Map, Value, json};

use super::{
    InvalidReply, JudgeEndpoint, JudgePrompt, JudgeReply, OutputMode, RequestFeatures, TokenLimitName,
    VERDICT_DESCRIPTION, VERDICT_NAME, count,
};
use crate::providers::json_post::key_header;

/// Returns the authentication headers; `None` if the key is not a valid header value.
pub fn headers(key: &str) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    if !key.is_empty() {
        headers.insert(AUTHORIZATION, key_header(&format!("Bearer {key}"))?);
    }
    Some(headers)
}

/// Returns the request body.
pub fn request(endpoint: &JudgeEndpoint, prompt: &JudgePrompt<'_>, features: RequestFeatures) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(endpoint.model));
    body.insert("messages".to_owned(), messages(prompt, features));
    if features.temperature {
        body.insert("temperature".to_owned(), json!(0));
    }
    if let Some(limit) = features.limit {
        let name = match limit {
            TokenLimitName::CompletionTokens => "max_completion_tokens",
            TokenLimitName::Tokens => "max_tokens",
        };
        body.insert(name.to_owned(), json!(prompt.max_tokens));
    }
    match features.output_mode {
        OutputMode::Schema => {
            let schema = json!({"name": VERDICT_NAME, "strict": true, "schema": prompt.schema});
            let format = json!({"type": "json_schema", "json_schema": schema});
            body.insert("response_format".to_owned(), format);
        }
        OutputMode::Tool => {
            let function = json!({"name": VERDICT_NAME, "description": VERDICT_DESCRIPTION, "parameters": prompt.schema});
            body.insert("tools".to_owned(), json!([{"type": "function", "function": function}]));
            let choice = json!({"type": "function", "function": {"name": VERDICT_NAME}});
            body.insert("tool_choice".to_owned(), choice);
        }
        OutputMode::Json => {
            body.insert("response_format".to_owned(), json!({"type": "json_object"}));
        }
        OutputMode::Text => {}
    }
    Value::Object(body)
}

fn messages(prompt: &JudgePrompt<'_>, features: RequestFeatures) -> Value {
    let mut messages = Vec::with_capacity(prompt.messages.len() + 1);
    if features.system {
        messages.push(json!({"role": "system", "content": prompt.system}));
    }
    for (index, text) in prompt.messages.iter().enumerate() {
        let role = if index % 2 == 0 { "user" } else { "assistant" };
        let content = match index {
            0 if !features.system => format!("{}\n\n{text}", prompt.system),
            _ => text.clone(),
        };
        messages.push(json!({"role": role, "content": content}));
    }
    Value::Array(messages)
}

/// Parses a response.
///
/// # Errors
///
/// Fails when it contains no reply.
pub fn parse_reply(body: &Value) -> Result<JudgeReply, InvalidReply> {
    let Some(choice) = body.pointer("/choices/0") else {
        return Err(match body.get("error").filter(|it| !it.is_null()) {
            Some(_) => InvalidReply::Error(body.clone()),
            None => {
                InvalidReply::OtherProtocol("its response has no choices: does it support OpenAI's protocol?")
            }
        });
    };
    // Some routers return an error in place of the reply.
    if let Some(error) = choice.get("error").filter(|it| !it.is_null()) {
        return Err(InvalidReply::Error(json!({"error": error})));
    }
    let Some(message) = choice.get("message") else {
        return Err(InvalidReply::OtherProtocol(
            "its response has no message: does it support OpenAI's protocol?",
        ));
    };
    let reason = choice.get("finish_reason").and_then(Value::as_str).unwrap_or_default();
    let refusal = message.get("refusal").and_then(Value::as_str).filter(|it| !it.is_empty());
    let declined = match (refusal, reason) {
        (Some(refusal), _) => Some(refusal.to_owned()),
        (None, "content_filter") => Some("its content filter stopped the reply".to_owned()),
        _ => None,
    };
    let text = call(message).or_else(|| content(message)).unwrap_or_default();
    Ok(JudgeReply { text, is_cut: reason == "length", declined, usage: usage(&body["usage"]) })
}

/// Returns the arguments of the requested tool call, else of the first one.
fn call(message: &Value) -> Option<String> {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    let functions = calls.into_iter().flatten().filter_map(|it| it.get("function"));
    let functions: Vec<&Value> = functions.chain(message.get("function_call")).collect();
    let named = functions.iter().find(|it| it["name"] == VERDICT_NAME);
    let arguments = named.or(functions.first())?.get("arguments")?;
    match arguments {
        Value::Null => None,
        Value::String(text) => Some(text.clone()).filter(|it| !it.trim().is_empty()),
        other => Some(other.to_string()),
    }
}

/// Returns the text, which may be in one or several parts.
fn content(message: &Value) -> Option<String> {
    match message.get("content")? {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(parts.iter().filter_map(|it| it["text"].as_str()).collect()),
        // Some services return a JSON object instead of a text.
        object @ Value::Object(_) => Some(object.to_string()),
        _ => None,
    }
}

/// Returns the token counts of a response.
pub(in crate::providers) fn usage(usage: &Value) -> Usage {
    Usage {
        prompt: count(usage, "/prompt_tokens"),
        completion: count(usage, "/completion_tokens"),
        cached: count(usage, "/prompt_tokens_details/cached_tokens"),
        cache_write: None,
        reasoning: count(usage, "/completion_tokens_details/reasoning_tokens"),
        cached_in_prompt: true,
    }
}

#[cfg(test)]
mod tests {
    use api::credential::Provider;
    use outbound::AddressOwner;

    use super::*;

    fn sent(features: RequestFeatures) -> Value {
        let endpoint = JudgeEndpoint {
            provider: Provider::OpenAi,
            base_url: None,
            key: String::new(),
            model: "m".to_owned(),
            set_by: AddressOwner::Operator,
        };
        let messages = ["one", "two", "three"].map(str::to_owned);
        let schema = json!({"type": "object"});
        request(
            &endpoint,
            &JudgePrompt { system: "s", messages: &messages, schema: &schema, max_tokens: 9 },
            features,
        )
    }

    #[test]
    fn openai_request_has_form_of_each_output_mode() {
        let first = RequestFeatures::first(Provider::OpenAi);
        let body = sent(first);
        assert_eq!(body["response_format"]["json_schema"]["strict"], true);
        assert_eq!((&body["temperature"], &body["max_completion_tokens"]), (&json!(0), &json!(9)));
        let roles: Vec<&str> =
            body["messages"].as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "user"]);
        let body = sent(RequestFeatures {
            output_mode: OutputMode::Tool,
            limit: Some(TokenLimitName::Tokens),
            ..first
        });
        assert_eq!(body["tool_choice"]["function"]["name"], VERDICT_NAME);
        assert_eq!((&body["response_format"], &body["max_tokens"]), (&Value::Null, &json!(9)));
        assert_eq!(
            sent(RequestFeatures { output_mode: OutputMode::Json, ..first })["response_format"]["type"],
            "json_object"
        );
        let bare = sent(RequestFeatures {
            output_mode: OutputMode::Text,
            temperature: false,
            limit: None,
            system: false,
        });
        let members: Vec<&String> = bare.as_object().unwrap().keys().collect();
        assert_eq!(members, ["messages", "model"]);
        assert_eq!(bare["messages"][0], json!({"role": "user", "content": "s\n\none"}));
    }

    #[test]
    fn openai_reply_is_found_in_any_form() {
        let text = |message: Value| parse_reply(&json!({"choices": [{"message": message}]})).unwrap().text;
        assert_eq!(text(json!({"content": "a"})), "a");
        assert_eq!(text(json!({"content": [{"type": "text", "text": "a"}, {"text": "b"}]})), "ab");
        assert_eq!(text(json!({"content": {"a": 1}})), r#"{"a":1}"#);
        assert_eq!(text(json!({"content": null})), "");
        let call = |arguments: Value| json!({"function": {"name": "verdict", "arguments": arguments}});
        let other = json!({"function": {"name": "x", "arguments": "y"}});
        assert_eq!(text(json!({"content": "", "tool_calls": [other, call(json!("z"))]})), "z");
        assert_eq!(text(json!({"tool_calls": [call(json!({"a": 1}))]})), r#"{"a":1}"#);
        assert_eq!(text(json!({"content": "a", "tool_calls": [call(json!(""))]})), "a");
        assert_eq!(text(json!({"function_call": {"arguments": "z"}})), "z");
        assert_eq!(text(json!({"content": "a", "tool_calls": "none"})), "a");
    }

    #[test]
    fn openai_response_without_reply_is_classified() {
        assert!(matches!(parse_reply(&json!({"error": {"message": "x"}})), Err(InvalidReply::Error(_))));
        assert!(matches!(
            parse_reply(&json!({"choices": [{"error": {"code": 502}}]})),
            Err(InvalidReply::Error(_))
        ));
        for body in [json!({}), json!([]), json!({"choices": []}), json!({"choices": [{}]}), json!("x")] {
            assert!(matches!(parse_reply(&body), Err(InvalidReply::OtherProtocol(_))), "{body}");
        }
        let choice =
            |choice: Value| parse_reply(&json!({"choices": [choice], "usage": {"prompt_tokens": 3}}));
        let cut = choice(json!({"message": {"content": "{"}, "finish_reason": "length"})).unwrap();
        assert!(cut.is_cut && cut.usage.prompt == Some(3));
        let refused = choice(json!({"message": {"refusal": "no"}})).unwrap();
        assert_eq!(refused.declined.as_deref(), Some("no"));
        let filtered = choice(json!({"message": {"content": ""}, "finish_reason": "content_filter"}));
        assert!(filtered.unwrap().declined.is_some());
    }
}
