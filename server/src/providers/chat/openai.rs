//! `POST /chat/completions` of OpenAI's protocol. Pure.

use serde_json::{Map, Value, json};

use super::{
    super::judge::{InvalidReply, openai::usage},
    ChatReply, ChatRequest, output,
};

/// Returns the request body.
pub fn request(model: &str, request: &ChatRequest) -> Value {
    let ChatRequest { messages, tools, parameters } = request;
    let mut body: Map<String, Value> = parameters.clone();
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), json!(messages));
    if !tools.is_empty() {
        body.insert("tools".to_owned(), json!(tools));
    }
    Value::Object(body)
}

/// Parses a response.
///
/// # Errors
///
/// Fails when it contains no reply.
pub fn parse_reply(body: &Value) -> Result<ChatReply, InvalidReply> {
    let Some(message) = body.pointer("/choices/0/message") else {
        return Err(match body.get("error").or_else(|| body.pointer("/choices/0/error")) {
            Some(error) if !error.is_null() => InvalidReply::Error(json!({"error": error})),
            _ => {
                InvalidReply::OtherProtocol("its response has no message: does it support OpenAI's protocol?")
            }
        });
    };
    let text = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|it| it["text"].as_str()).collect(),
        _ => message["refusal"].as_str().unwrap_or_default().to_owned(),
    };
    let calls = message.get("tool_calls").and_then(Value::as_array).cloned().unwrap_or_default();
    if text.is_empty() && calls.is_empty() {
        return Err(InvalidReply::OtherProtocol("its reply has no text and no tool call"));
    }
    let model = body.get("model").and_then(Value::as_str).map(str::to_owned);
    Ok(ChatReply { output: output(text, calls), model, usage: usage(&body["usage"]), cost: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_has_messages_tools_and_parameters() {
        let parameters = json!({"temperature": 0.2, "model": "other"});
        let chat = ChatRequest {
            messages: vec![json!({"role": "user", "content": "Hi"})],
            tools: Vec::new(),
            parameters: parameters.as_object().cloned().unwrap_or_default(),
        };
        let expected =
            json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "temperature": 0.2});
        assert_eq!(request("m", &chat), expected);
        let tool = json!({"type": "function", "function": {"name": "f"}});
        assert_eq!(request("m", &ChatRequest { tools: vec![tool.clone()], ..chat })["tools"], json!([tool]));
    }

    #[test]
    fn reply_is_text_or_a_message_with_calls() {
        let reply = |message: Value| {
            let body =
                json!({"model": "m-1", "choices": [{"message": message}], "usage": {"prompt_tokens": 3}});
            parse_reply(&body).map(|it| (it.output, it.model, it.usage.prompt))
        };
        let expected = |output: &str| Ok((output.to_owned(), Some("m-1".to_owned()), Some(3)));
        assert_eq!(reply(json!({"content": "Hello"})), expected("Hello"));
        assert_eq!(reply(json!({"content": [{"type": "text", "text": "Hello"}]})), expected("Hello"));
        assert_eq!(reply(json!({"content": null, "refusal": "I can't"})), expected("I can't"));
        let call = json!({"id": "c", "function": {"name": "f", "arguments": "{}"}});
        let output = json!([{"role": "assistant", "content": null, "tool_calls": [call]}]).to_string();
        assert_eq!(reply(json!({"content": "", "tool_calls": [call]})), expected(&output));
        assert!(reply(json!({"content": ""})).is_err());
        let error = parse_reply(&json!({"error": {"message": "no"}}));
        assert_eq!(error, Err(InvalidReply::Error(json!({"error": {"message": "no"}}))));
        assert!(matches!(parse_reply(&json!({"content": []})), Err(InvalidReply::OtherProtocol(_))));
    }
}
