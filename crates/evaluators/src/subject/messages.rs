//! Messages of a conversation, in the formats of providers and frameworks.

use serde_json::{Map, Value};

use super::{
    calls::{self, Call},
    json::{first, first_text},
};

/// Maximum nesting of wrappers around messages.
const MAX_DEPTH: usize = 4;
/// Maximum number of messages that are read from one list; the newest are kept.
const MAX_MESSAGES: usize = 1_000;
/// Maximum number of parts that are read from one message.
const MAX_MESSAGE_PARTS: usize = 1_000;

/// A message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// The role: `system`, `user`, `assistant`, `tool`, or another word of the sender.
    pub role: String,
    /// The text: the text parts, joined by line ends.
    pub text: String,
    /// The tool calls in the message.
    pub calls: Vec<Call>,
    /// The tool results in the message.
    pub results: Vec<ToolResult>,
}

/// The result of a tool call in a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolResult {
    /// The ID of the call.
    pub id: Option<String>,
    /// The name of the tool.
    pub name: Option<String>,
    /// The text of the result.
    pub text: String,
}

/// Returns the messages that a value contains; none for other values.
pub(super) fn read(value: &Value) -> Option<Vec<Message>> {
    read_at(value, 0)
}

fn read_at(value: &Value, depth: usize) -> Option<Vec<Message>> {
    match value {
        _ if depth > MAX_DEPTH => None,
        Value::Array(items) => {
            let items = &items[items.len().saturating_sub(MAX_MESSAGES)..];
            // LangGraph and other frameworks wrap the list in a second list.
            if let [Value::Array(_)] = items {
                return read_at(&items[0], depth + 1);
            }
            let messages: Option<Vec<Message>> = items.iter().map(one).collect();
            messages.filter(|it| !it.is_empty())
        }
        Value::Object(object) => {
            if let Some(message) = one(value) {
                return Some(vec![message]);
            }
            let mut messages = Vec::new();
            if let Some(system) = first(object, &["system", "instructions", "systemInstruction"]) {
                let text = text_of(system);
                if !text.is_empty() {
                    messages.push(Message { role: "system".to_owned(), text, ..Message::default() });
                }
            }
            const LIST_MEMBERS: &[&str] = &[
                "messages",
                "contents",
                "choices",
                "candidates",
                "message",
                "input",
                "output",
                "inputs",
                "outputs",
            ];
            if let Some(found) =
                LIST_MEMBERS.iter().filter_map(|name| object.get(*name)).find_map(|it| read_at(it, depth + 1))
            {
                messages.extend(found);
                return Some(messages);
            }
            let prompt = first_text(object, &["prompt", "question", "query", "input", "user_input"])?;
            messages.push(Message { role: "user".to_owned(), text: prompt.to_owned(), ..Message::default() });
            Some(messages)
        }
        _ => None,
    }
}

/// Returns one message; none if the value has neither a role nor a type of message.
fn one(value: &Value) -> Option<Message> {
    let object = unwrapped(value.as_object()?);
    if let Some(message) = item_of_responses(object) {
        return Some(message);
    }
    let role = role(object)?;
    let mut message = Message { role, ..Message::default() };
    for name in ["parts", "contents", "content"] {
        match object.get(name) {
            Some(Value::Array(parts)) => {
                parts.iter().take(MAX_MESSAGE_PARTS).for_each(|part| add(&mut message, part));
            }
            Some(content @ (Value::String(_) | Value::Object(_))) => add(&mut message, content),
            _ => continue,
        }
        break;
    }
    if message.role == "tool" && message.results.is_empty() {
        let text = std::mem::take(&mut message.text);
        let id = first_text(object, &["tool_call_id", "toolCallId", "call_id"]).map(str::to_owned);
        let name = first_text(object, &["name", "tool_name"]).map(str::to_owned);
        message.results.push(ToolResult { id, name, text });
    }
    let mut known: Vec<Option<String>> = message.calls.iter().map(|it| it.id.clone()).collect();
    for call in calls::of_message(object) {
        // Anthropic's calls may occur twice, as parts and as a list.
        if call.id.is_none() || !known.contains(&call.id) {
            known.push(call.id.clone());
            message.calls.push(call);
        }
    }
    Some(message)
}

/// Removes LangChain's two message wrappers, and the wrapper of a choice.
fn unwrapped(object: &Map<String, Value>) -> &Map<String, Value> {
    for name in ["kwargs", "data", "message"] {
        if let Some(inner) = object.get(name).and_then(Value::as_object)
            && (object.contains_key("lc") || object.contains_key("type") || name == "message")
            && (inner.contains_key("content") || inner.contains_key("role"))
        {
            return inner;
        }
    }
    // A candidate of Gemini.
    match object.get("content").and_then(Value::as_object) {
        Some(inner) if inner.contains_key("parts") && !object.contains_key("role") => inner,
        _ => object,
    }
}

fn role(object: &Map<String, Value>) -> Option<String> {
    let word = match object.get("role").and_then(Value::as_str) {
        Some(role) => role,
        None => match object.get("type").and_then(Value::as_str) {
            Some(word @ ("human" | "ai" | "system" | "tool")) if object.contains_key("content") => word,
            _ => return calls::of_message(object).first().map(|_| "assistant".to_owned()),
        },
    };
    Some(match word {
        "human" => "user".to_owned(),
        "ai" | "model" => "assistant".to_owned(),
        "developer" => "system".to_owned(),
        "function" => "tool".to_owned(),
        other => other.to_owned(),
    })
}

/// Returns an item of OpenAI's Responses API that is not a message, or a call on its own, as a message.
fn item_of_responses(object: &Map<String, Value>) -> Option<Message> {
    match object.get("type").and_then(Value::as_str) {
        Some("function_call_output") => {
            let outcome = ToolResult {
                id: first_text(object, &["call_id"]).map(str::to_owned),
                name: None,
                text: object.get("output").map(text_of).unwrap_or_default(),
            };
            Some(Message { role: "tool".to_owned(), results: vec![outcome], ..Message::default() })
        }
        Some("reasoning") if !object.contains_key("role") => {
            Some(Message { role: "assistant".to_owned(), ..Message::default() })
        }
        _ if object.contains_key("role") => None,
        _ if object.contains_key("function_call") => None,
        _ => {
            let call = calls::one(object)?;
            Some(Message { role: "assistant".to_owned(), calls: vec![call], ..Message::default() })
        }
    }
}

/// Adds a part of the content to a message.
fn add(message: &mut Message, part: &Value) {
    let object = match part {
        Value::String(text) => return say(message, text),
        Value::Object(object) => object,
        _ => return,
    };
    if let Some(call) = calls::one(object) {
        message.calls.push(call);
        return;
    }
    let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "tool_call_response" | "tool_result" | "tool-result" | "function_response" => {
            message.results.push(ToolResult {
                id: first_text(object, &["id", "tool_use_id", "toolCallId", "tool_call_id"])
                    .map(str::to_owned),
                name: first_text(object, &["name", "toolName"]).map(str::to_owned),
                text: first(object, &["response", "result", "output", "content"])
                    .map(text_of)
                    .unwrap_or_default(),
            });
        }
        // The thoughts of a model are not part of its answer.
        "thinking" | "reasoning" | "redacted_thinking" => {}
        _ => {
            for (name, id, result) in
                [("toolResult", "toolUseId", "content"), ("functionResponse", "id", "response")]
            {
                if let Some(inner) = object.get(name).and_then(Value::as_object) {
                    message.results.push(ToolResult {
                        id: first_text(inner, &[id]).map(str::to_owned),
                        name: first_text(inner, &["name"]).map(str::to_owned),
                        text: inner.get(result).map(text_of).unwrap_or_default(),
                    });
                    return;
                }
            }
            match first(object, &["text", "content", "refusal"]) {
                Some(text) => say(message, &text_of(text)),
                None if kind.is_empty() => {}
                None => say(message, &format!("({kind})")),
            }
        }
    }
}

fn say(message: &mut Message, text: &str) {
    if !message.text.is_empty() && !text.is_empty() {
        message.text.push('\n');
    }
    message.text.push_str(text);
}

/// Returns the text of a value: a text unchanged, text parts joined, anything else as JSON.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) if !parts.is_empty() && parts.iter().all(|it| part_text(it).is_some()) => {
            parts.iter().filter_map(part_text).collect::<Vec<_>>().join("\n")
        }
        Value::Object(_) => part_text(value).unwrap_or_else(|| value.to_string()),
        other => other.to_string(),
    }
}

/// Returns the text of a part that contains only text.
fn part_text(part: &Value) -> Option<String> {
    match part {
        Value::String(text) => Some(text.clone()),
        Value::Object(object) => {
            let kind = object.get("type").and_then(Value::as_str).unwrap_or("text");
            let is_text = matches!(kind, "text" | "input_text" | "output_text" | "json");
            if is_text && object.len() <= 3 {
                match first(object, &["text", "content", "value"])? {
                    Value::String(text) => Some(text.clone()),
                    other if kind == "json" => Some(other.to_string()),
                    _ => None,
                }
            } else {
                None
            }
        }
        _ => None,
    }
}

impl std::fmt::Display for Message {
    /// Formats the message for a judge, with its role and tool calls.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut begun = false;
        let mut line_end = |f: &mut std::fmt::Formatter<'_>| {
            if std::mem::replace(&mut begun, true) { f.write_str("\n") } else { Ok(()) }
        };
        if !self.text.is_empty() {
            line_end(f)?;
            write!(f, "{}: {}", self.role, self.text)?;
        }
        for call in &self.calls {
            line_end(f)?;
            write!(f, "{} calls {} with {}", self.role, call.name, call.arguments)?;
        }
        for outcome in &self.results {
            line_end(f)?;
            let name = outcome.name.as_deref().or(outcome.id.as_deref()).unwrap_or("tool");
            write!(f, "result of {name}: {}", outcome.text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(value: Value) -> Option<String> {
        let shown: Vec<String> = read(&value)?.iter().map(Message::to_string).collect();
        Some(shown.join("\n"))
    }

    #[test]
    fn messages_of_the_providers_are_read() {
        let expected = "system: Be terse\nuser: Hi\nassistant calls f with {\"a\":1}\nresult of c1: 2";
        for value in [
            json!([
                {"role": "system", "content": "Be terse"},
                {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "2"},
            ]),
            json!({"system": "Be terse", "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "…"}, {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "2"}]}]},
            ]}),
            json!([
                {"role": "system", "parts": [{"type": "text", "content": "Be terse"}]},
                {"role": "user", "parts": [{"type": "text", "content": "Hi"}]},
                {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}}]},
                {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "2"}]},
            ]),
            json!({"instructions": "Be terse", "input": [
                {"role": "user", "content": "Hi"},
                {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}"},
                {"type": "function_call_output", "call_id": "c1", "output": "2"},
            ]}),
            json!({"messages": [[
                {"lc": 1, "id": ["SystemMessage"], "kwargs": {"type": "system", "content": "Be terse"}},
                {"type": "human", "data": {"content": "Hi", "type": "human"}},
                {"type": "ai", "content": "", "tool_calls": [{"name": "f", "args": {"a": 1}, "id": "c1", "type": "tool_call"}]},
                {"type": "tool", "content": "2", "tool_call_id": "c1"},
            ]]}),
            json!([
                {"role": "system", "content": "Be terse"},
                {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
                {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "f", "input": {"a": 1}}]},
                {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "output": {"type": "text", "value": "2"}}]},
            ]),
        ] {
            assert_eq!(shown(value.clone()).as_deref(), Some(expected), "{value}");
        }
    }

    #[test]
    fn responses_of_all_providers_are_parsed() {
        for value in [
            json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}}]}),
            json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}}]}),
            json!({"id": "r", "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}]}),
            json!({"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}),
        ] {
            assert_eq!(shown(value.clone()).as_deref(), Some("assistant: Hi"), "{value}");
        }
    }

    #[test]
    fn parts_beyond_the_limit_are_not_parsed() {
        let result = json!({"type": "tool_result", "tool_use_id": "c", "content": "2"});
        let read = read(&json!([{"role": "user", "content": vec![result; 3 * MAX_MESSAGE_PARTS]}])).unwrap();
        assert_eq!(read[0].results.len(), MAX_MESSAGE_PARTS);
    }

    #[test]
    fn other_json_is_not_a_conversation() {
        for value in
            [json!({"a": 1}), json!([1, 2]), json!([]), json!({"id": "x", "content": "text"}), json!("x")]
        {
            assert_eq!(read(&value), None, "{value}");
        }
    }
}
