//! `POST /v1/messages` of Anthropic's protocol. Pure.

use serde_json::{Map, Value, json};

use super::{
    super::judge::{InvalidReply, anthropic::usage},
    ChatReply, ChatRequest, output,
};

/// Maximum number of tokens of a reply if the recorded request has none: the protocol requires a number.
const DEFAULT_MAX_TOKENS: u32 = 4_096;

/// Returns the request body.
pub fn request(model: &str, request: &ChatRequest) -> Value {
    let ChatRequest { messages, tools, parameters } = request;
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    let limit = parameters.get("max_tokens").or_else(|| parameters.get("max_completion_tokens"));
    body.insert("max_tokens".to_owned(), limit.cloned().unwrap_or_else(|| json!(DEFAULT_MAX_TOKENS)));
    for name in ["temperature", "top_p", "top_k"] {
        if let Some(value) = parameters.get(name) {
            body.insert(name.to_owned(), value.clone());
        }
    }
    match parameters.get("stop") {
        Some(Value::String(stop)) => _ = body.insert("stop_sequences".to_owned(), json!([stop])),
        Some(stops @ Value::Array(_)) => _ = body.insert("stop_sequences".to_owned(), stops.clone()),
        _ => {}
    }
    let is_system = |it: &&Value| matches!(it["role"].as_str(), Some("system" | "developer"));
    let system: Vec<String> = messages.iter().filter(is_system).map(|it| text_of(&it["content"])).collect();
    if !system.is_empty() {
        body.insert("system".to_owned(), json!(system.join("\n\n")));
    }
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages.iter().filter(|it| !is_system(it)) {
        let (role, blocks) = blocks(message);
        // The protocol requires that the roles alternate.
        match turns.last_mut() {
            Some(last) if last.0 == role => last.1.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    turns.retain(|it| !it.1.is_empty());
    let turns: Vec<Value> =
        turns.into_iter().map(|(role, blocks)| json!({"role": role, "content": blocks})).collect();
    body.insert("messages".to_owned(), Value::Array(turns));
    if !tools.is_empty() {
        body.insert("tools".to_owned(), tools.iter().map(tool).collect());
    }
    Value::Object(body)
}

/// Returns the role and the content blocks of a message.
fn blocks(message: &Value) -> (&'static str, Vec<Value>) {
    if message["role"] == "tool" {
        let id = message["tool_call_id"].as_str().unwrap_or_default();
        let result =
            json!({"type": "tool_result", "tool_use_id": id, "content": text_of(&message["content"])});
        return ("user", vec![result]);
    }
    let role = if message["role"] == "assistant" { "assistant" } else { "user" };
    let mut blocks: Vec<Value> = match &message["content"] {
        Value::Array(parts) => parts.iter().filter_map(part).collect(),
        content => {
            Some(text_of(content)).filter(|it| !it.is_empty()).map(|it| text_block(&it)).into_iter().collect()
        }
    };
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        let input = match &function["arguments"] {
            Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| json!({})),
            Value::Null => json!({}),
            other => other.clone(),
        };
        blocks.push(json!({"type": "tool_use", "id": call["id"], "name": function["name"], "input": input}));
    }
    (role, blocks)
}

/// Returns the block of a content part: text, or an image by its address.
fn part(part: &Value) -> Option<Value> {
    if let Some(address) = part.pointer("/image_url/url").and_then(Value::as_str) {
        let source = match address.strip_prefix("data:").and_then(|it| it.split_once(";base64,")) {
            Some((media_type, data)) => json!({"type": "base64", "media_type": media_type, "data": data}),
            None => json!({"type": "url", "url": address}),
        };
        return Some(json!({"type": "image", "source": source}));
    }
    let text = part.as_str().or_else(|| part["text"].as_str())?;
    Some(text).filter(|it| !it.is_empty()).map(text_block)
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tool(tool: &Value) -> Value {
    let function = &tool["function"];
    let mut converted = json!({"name": function["name"], "input_schema": function["parameters"]});
    if let Some(description) = function.get("description") {
        converted["description"] = description.clone();
    }
    converted
}

/// Returns the text of a content: a text, or the texts of its parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|it| it["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// Parses a response.
///
/// # Errors
///
/// Fails when it contains no reply.
pub fn parse_reply(body: &Value) -> Result<ChatReply, InvalidReply> {
    let Some(blocks) = body.get("content").and_then(Value::as_array) else {
        return Err(match body.get("error").filter(|it| !it.is_null()) {
            Some(_) => InvalidReply::Error(body.clone()),
            None => InvalidReply::OtherProtocol(
                "its response has no content: does it support Anthropic's protocol?",
            ),
        });
    };
    let text: String =
        blocks.iter().filter(|it| it["type"] == "text").filter_map(|it| it["text"].as_str()).collect();
    let calls = blocks.iter().filter(|it| it["type"] == "tool_use").map(|it| {
        let function = json!({"name": it["name"], "arguments": it["input"].to_string()});
        json!({"id": it["id"], "type": "function", "function": function})
    });
    let calls: Vec<Value> = calls.collect();
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
    fn openai_conversation_is_converted() {
        let call =
            json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}});
        let chat = ChatRequest {
            messages: vec![
                json!({"role": "system", "content": "Be terse"}),
                json!({"role": "user", "content": [{"type": "text", "text": "Hi"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}),
                json!({"role": "assistant", "content": null, "tool_calls": [call]}),
                json!({"role": "tool", "tool_call_id": "c1", "content": "2"}),
                json!({"role": "user", "content": "And?"}),
            ],
            tools: vec![
                json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}),
            ],
            parameters: json!({"temperature": 0.5, "stop": "x", "seed": 1}).as_object().cloned().unwrap(),
        };
        let expected = json!({
            "model": "m", "max_tokens": 4096, "temperature": 0.5, "stop_sequences": ["x"], "system": "Be terse",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Hi"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "2"},
                    {"type": "text", "text": "And?"}]},
            ],
            "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        });
        assert_eq!(request("m", &chat), expected);
    }

    #[test]
    fn reply_is_text_or_a_message_with_calls() {
        let reply =
            |content: Value| parse_reply(&json!({"model": "m-1", "content": content})).map(|it| it.output);
        assert_eq!(
            reply(json!([{"type": "thinking"}, {"type": "text", "text": "Hello"}])),
            Ok("Hello".to_owned())
        );
        let message: Value = serde_json::from_str(
            &reply(json!([{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}])).unwrap(),
        )
        .unwrap();
        assert_eq!(message[0]["tool_calls"][0]["function"], json!({"name": "f", "arguments": "{\"a\":1}"}));
        assert!(reply(json!([])).is_err());
    }
}
