//! Rebuilds the request of a span from its recorded messages, parameters and tools. Pure.

use api::control::{ActionConfig, SYSTEM_PLACEHOLDER};
use evaluators::subject::{Message, RecordedCall, Tool};
use serde_json::{Map, Value, json};

use crate::providers::chat::ChatRequest;

/// The parameters that are copied from the recorded request, with their names in the conventions of
/// instrumentations.
const REPEATED_PARAMETERS: &[(&str, &[&str])] = &[
    ("temperature", &["temperature"]),
    ("top_p", &["top_p", "topP"]),
    ("top_k", &["top_k", "topK"]),
    ("max_tokens", &["max_tokens", "maxTokens", "max_output_tokens", "maxOutputTokens"]),
    ("max_completion_tokens", &["max_completion_tokens"]),
    ("stop", &["stop", "stop_sequences", "stopSequences"]),
    ("seed", &["seed"]),
    ("frequency_penalty", &["frequency_penalty", "frequencyPenalty"]),
    ("presence_penalty", &["presence_penalty", "presencePenalty"]),
    ("response_format", &["response_format"]),
];
/// Prefixes of the names of metadata that contain one parameter each.
const PARAMETER_PREFIXES: &[&str] =
    &["gen_ai.request.", "gen_ai.openai.request.", "ai.settings.", "llm.request.", ""];
/// The names of metadata that contain an object of parameters.
const PARAMETER_OBJECTS: &[&str] =
    &["llm.invocation_parameters", "model_parameters", "langfuse.observation.model.parameters"];

/// A request that repeats a recorded one.
#[derive(Clone, Debug, PartialEq)]
pub struct RebuiltRequest {
    /// The request.
    pub chat: ChatRequest,
    /// Whether the messages differ from the recorded ones.
    pub has_new_messages: bool,
}

/// Returns the model that the recorded request named. A span shows the model that responded, and a provider may not know
/// that name: a deployment has a name of its own.
pub fn recorded_model(metadata: &Map<String, Value>) -> Option<&str> {
    metadata.get("request_model")?.as_str().filter(|it| !it.is_empty())
}

/// Rebuilds the request of a span, changed as the action requires. Returns `None` if the span recorded no messages.
pub fn rebuild(
    input: Option<&str>,
    metadata: Map<String, Value>,
    config: &ActionConfig,
) -> Option<RebuiltRequest> {
    let call = RecordedCall::of(input, metadata.clone());
    let mut messages = call.input.as_ref().and_then(literal_messages);
    if messages.is_none() {
        messages = Some(call.messages.iter().flat_map(message).collect());
    }
    let mut messages: Vec<Value> = messages.unwrap_or_default();
    if !messages.iter().any(|it| matches!(it["role"].as_str(), Some("user" | "tool"))) {
        return None;
    }
    let has_new_messages = modify(&mut messages, config);
    let mut parameters = parameters(call.input.as_ref(), &metadata);
    if let Some(temperature) = config.temperature {
        parameters.insert("temperature".to_owned(), json!(temperature));
    }
    let tools = call.tools.iter().map(tool).collect();
    Some(RebuiltRequest { chat: ChatRequest { messages, tools, parameters }, has_new_messages })
}

/// Returns messages that were recorded in the form of OpenAI's protocol, with all their parts.
fn literal_messages(input: &Value) -> Option<Vec<Value>> {
    let list = match input {
        Value::Array(list) => list,
        Value::Object(object) if !object.contains_key("system") => object.get("messages")?.as_array()?,
        _ => return None,
    };
    list.iter().all(is_literal).then(|| list.iter().cloned().map(with_call_types).collect())
}

/// Adds the type to tool calls: OpenAI requires it, and some instrumentations omit it.
fn with_call_types(mut message: Value) -> Value {
    for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(call) = call.as_object_mut() {
            call.entry("type").or_insert_with(|| json!("function"));
        }
    }
    message
}

fn is_literal(message: &Value) -> bool {
    const KNOWN_ROLES: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];
    const PART_TYPES: [&str; 4] = ["text", "image_url", "input_audio", "file"];
    const MESSAGE_MEMBERS: [&str; 6] = ["role", "content", "name", "tool_calls", "tool_call_id", "refusal"];
    let Some(object) = message.as_object() else { return false };
    let has_role = message["role"].as_str().is_some_and(|it| KNOWN_ROLES.contains(&it));
    let calls = message["tool_calls"].as_array();
    has_role
        && object.keys().all(|it| MESSAGE_MEMBERS.contains(&it.as_str()))
        && calls.into_iter().flatten().all(|it| it.get("function").is_some())
        && match &message["content"] {
            Value::String(_) | Value::Null => true,
            Value::Array(parts) => {
                parts.iter().all(|it| it["type"].as_str().is_some_and(|it| PART_TYPES.contains(&it)))
            }
            _ => false,
        }
}

/// Returns a message in the form of OpenAI's protocol: one for its text and calls, and one for each tool result.
fn message(message: &Message) -> Vec<Value> {
    let mut converted = Vec::new();
    let calls: Vec<Value> = message
        .calls
        .iter()
        .map(|it| {
            let arguments = match &it.arguments {
                Value::String(text) => text.clone(),
                Value::Null => "{}".to_owned(),
                other => other.to_string(),
            };
            json!({"id": it.id, "type": "function", "function": {"name": it.name, "arguments": arguments}})
        })
        .collect();
    for result in &message.results {
        converted.push(json!({"role": "tool", "tool_call_id": result.id, "content": result.text}));
    }
    if !message.text.is_empty() || !calls.is_empty() {
        let role = match message.role.as_str() {
            known @ ("system" | "user" | "assistant") => known,
            _ => "user",
        };
        let mut one = json!({"role": role, "content": message.text});
        if !calls.is_empty() {
            one["tool_calls"] = calls.into();
        }
        converted.push(one);
    }
    converted
}

/// Changes the system message as the action requires. Returns whether there is a change.
fn modify(messages: &mut Vec<Value>, config: &ActionConfig) -> bool {
    let ActionConfig { system_suffix, prompt_template, .. } = config;
    if system_suffix.is_none() && prompt_template.is_none() {
        return false;
    }
    let recorded: Vec<String> =
        messages.iter().filter(|it| is_system(it)).map(|it| text_of(&it["content"])).collect();
    let recorded = recorded.join("\n\n");
    let mut system = match prompt_template {
        Some(template) => template.replace(SYSTEM_PLACEHOLDER, &recorded),
        None => recorded,
    };
    if let Some(suffix) = system_suffix {
        if !system.is_empty() {
            system.push_str("\n\n");
        }
        system.push_str(suffix);
    }
    replace_system(messages, &system);
    true
}

/// Replaces the system messages of a request by one.
pub fn replace_system(messages: &mut Vec<Value>, system: &str) {
    messages.retain(|it| !is_system(it));
    messages.insert(0, json!({"role": "system", "content": system}));
}

fn is_system(message: &Value) -> bool {
    matches!(message["role"].as_str(), Some("system" | "developer"))
}

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

fn parameters(input: Option<&Value>, metadata: &Map<String, Value>) -> Map<String, Value> {
    let parsed = |value: &Value| match value {
        Value::String(text) => serde_json::from_str::<Value>(text).ok(),
        other => Some(other.clone()),
    };
    let objects: Vec<Value> = PARAMETER_OBJECTS.iter().filter_map(|it| parsed(metadata.get(*it)?)).collect();
    let objects: Vec<&Value> = input.into_iter().chain(&objects).collect();
    let mut found = Map::new();
    for (name, spellings) in REPEATED_PARAMETERS {
        let in_objects = || {
            let pairs = objects.iter().flat_map(|object| spellings.iter().map(move |it| (object, *it)));
            pairs.filter_map(|(object, spelling)| object.get(spelling)).find(|it| !it.is_null())
        };
        let in_metadata = || {
            let names = PARAMETER_PREFIXES
                .iter()
                .flat_map(|prefix| spellings.iter().map(move |spelling| format!("{prefix}{spelling}")));
            names.filter_map(|it| metadata.get(&it)).find(|it| !it.is_null())
        };
        if let Some(value) = in_objects().or_else(in_metadata).filter(|it| is_plausible(name, it)) {
            found.insert((*name).to_owned(), value.clone());
        }
    }
    if found.contains_key("max_completion_tokens") {
        found.remove("max_tokens");
    }
    found
}

/// Whether a parameter has a type that providers accept.
fn is_plausible(name: &str, value: &Value) -> bool {
    match name {
        "stop" => value.is_string() || value.is_array(),
        "response_format" => value.is_object(),
        "max_tokens" | "max_completion_tokens" | "top_k" => value.as_i64().is_some_and(|it| it > 0),
        "seed" => value.is_i64() || value.is_u64(),
        _ => value.is_number(),
    }
}

fn tool(tool: &Tool) -> Value {
    let parameters = tool.schema.clone().unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    let mut function = json!({"name": tool.name, "parameters": parameters});
    if let Some(description) = &tool.description {
        function["description"] = json!(description);
    }
    json!({"type": "function", "function": function})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rebuilt(input: &str, metadata: Value, config: &ActionConfig) -> Option<RebuiltRequest> {
        rebuild(Some(input), metadata.as_object().cloned().unwrap(), config)
    }

    fn retry(input: &str, metadata: Value) -> ChatRequest {
        rebuilt(input, metadata, &ActionConfig::default()).unwrap().chat
    }

    #[test]
    fn plain_text_is_a_message_of_the_user() {
        let request = rebuilt("Hi", json!({}), &ActionConfig::default()).unwrap();
        assert_eq!(request.chat.messages, [json!({"role": "user", "content": "Hi"})]);
        assert!(
            !request.has_new_messages && request.chat.tools.is_empty() && request.chat.parameters.is_empty()
        );
    }

    #[test]
    fn messages_in_the_form_of_openai_keep_all_parts() {
        let messages = json!([
            {"role": "system", "content": "Be terse"},
            {"role": "user", "content": [{"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]},
        ]);
        assert_eq!(json!(retry(&messages.to_string(), json!({})).messages), messages);
        let body = json!({"messages": messages, "temperature": 0.3, "max_tokens": 9, "stream": true});
        let request = retry(&body.to_string(), json!({}));
        assert_eq!(json!(request.messages), messages);
        assert_eq!(json!(request.parameters), json!({"temperature": 0.3, "max_tokens": 9}));
    }

    #[test]
    fn messages_of_other_conventions_are_converted() {
        let expected = json!([
            {"role": "system", "content": "Be terse"},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "2"},
        ]);
        for input in [
            json!([
                {"role": "system", "parts": [{"type": "text", "content": "Be terse"}]},
                {"role": "user", "parts": [{"type": "text", "content": "Hi"}]},
                {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}}]},
                {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "2"}]},
            ]),
            json!({"system": "Be terse", "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "2"}]},
            ]}),
        ] {
            assert_eq!(json!(retry(&input.to_string(), json!({})).messages), expected, "{input}");
        }
    }

    #[test]
    fn tool_call_without_type_gets_one() {
        let call = |more: Value| {
            let mut call = json!({"id": "c1", "function": {"name": "f", "arguments": "{}"}});
            call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": null, "tool_calls": [call]}])
        };
        let expected = call(json!({"type": "function"}));
        for recorded in [call(json!({})), expected.clone()] {
            assert_eq!(json!(retry(&recorded.to_string(), json!({})).messages), expected);
        }
    }

    #[test]
    fn parameters_of_the_conventions_are_repeated() {
        let all = json!({"temperature": 0.5, "max_tokens": 100, "top_p": 0.9, "stop": ["x"]});
        for metadata in [
            json!({"gen_ai.request.temperature": 0.5, "gen_ai.request.max_tokens": 100, "gen_ai.request.top_p": 0.9,
                "gen_ai.request.stop_sequences": ["x"]}),
            json!({"llm.invocation_parameters": "{\"temperature\":0.5,\"max_tokens\":100,\"top_p\":0.9,\"stop\":[\"x\"]}"}),
            json!({"ai.settings.temperature": 0.5, "ai.settings.maxOutputTokens": 100, "ai.settings.topP": 0.9,
                "ai.settings.stopSequences": ["x"]}),
            json!({"temperature": 0.5, "max_tokens": 100, "top_p": 0.9, "stop": ["x"]}),
        ] {
            assert_eq!(json!(retry("Hi", metadata.clone()).parameters), all, "{metadata}");
        }
        let invalid = json!({"temperature": "warm", "max_tokens": -1, "stop": 4, "seed": 0.5});
        assert!(retry("Hi", invalid).parameters.is_empty());
        let warm = ActionConfig { temperature: Some(1.0), ..ActionConfig::default() };
        let request = rebuilt("Hi", json!({"temperature": 0.5}), &warm).unwrap();
        assert_eq!(json!(request.chat.parameters), json!({"temperature": 1.0}));
    }

    #[test]
    fn tools_are_offered_again() {
        let tool = json!({"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}});
        let input = json!({"messages": [{"role": "user", "content": "Hi"}], "tools": [tool]});
        assert_eq!(retry(&input.to_string(), json!({})).tools, std::slice::from_ref(&tool));
        assert_eq!(retry("Hi", json!({"gen_ai.tool.definitions": [tool]})).tools, [tool]);
    }

    #[test]
    fn system_message_is_modified() {
        let input =
            json!([{"role": "system", "content": "Be terse"}, {"role": "user", "content": "Hi"}]).to_string();
        let system = |input: &str, config: ActionConfig| {
            let request = rebuilt(input, json!({}), &config).unwrap();
            assert!(request.has_new_messages);
            assert_eq!(request.chat.messages.len(), 2);
            request.chat.messages[0]["content"].as_str().unwrap().to_owned()
        };
        let suffix = || ActionConfig { system_suffix: Some("Be kind".to_owned()), ..ActionConfig::default() };
        assert_eq!(system(&input, suffix()), "Be terse\n\nBe kind");
        assert_eq!(system("Hi", suffix()), "Be kind");
        let template =
            |text: &str| ActionConfig { prompt_template: Some(text.to_owned()), ..ActionConfig::default() };
        assert_eq!(system(&input, template("Be kind")), "Be kind");
        assert_eq!(system(&input, template("{{system}}!")), "Be terse!");
    }

    #[test]
    fn spans_without_messages_are_refused() {
        for input in ["", " ", "{\"a\":1}", "[]", "[{\"role\":\"system\",\"content\":\"Be terse\"}]"] {
            assert_eq!(rebuilt(input, json!({}), &ActionConfig::default()), None, "{input}");
        }
        assert_eq!(rebuild(None, Map::new(), &ActionConfig::default()), None);
    }
}
