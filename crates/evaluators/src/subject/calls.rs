//! Tool calls: the requested tools, their arguments and results.

use serde_json::{Map, Value};

use super::json::{first, first_text};

/// Maximum number of calls that are read from one list.
const MAX_CALLS: usize = 500;

/// A tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// The name of the tool.
    pub name: String,
    /// The arguments: usually an object. Text that is not JSON stays text; null if the arguments are unknown.
    pub arguments: Value,
    /// The ID of the call.
    pub id: Option<String>,
    /// The result; none if it is unknown.
    pub result: Option<String>,
    /// The error, if the call failed.
    pub error: Option<String>,
}

impl Call {
    pub(super) fn new(name: &str, arguments: Option<&Value>, id: Option<&str>) -> Self {
        Self {
            // OpenAI's older models put the namespace before the name.
            name: name.strip_prefix("functions.").unwrap_or(name).to_owned(),
            arguments: arguments.map(unpacked).unwrap_or_default(),
            id: id.filter(|it| !it.is_empty()).map(str::to_owned),
            ..Self::default()
        }
    }
}

impl std::fmt::Display for Call {
    /// Formats the call for a judge.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "calls {} with {}", self.name, self.arguments)?;
        if let Some(error) = &self.error {
            write!(f, "\nfails: {error}")?;
        }
        match &self.result {
            Some(result) => write!(f, "\nresult: {result}"),
            None => Ok(()),
        }
    }
}

/// Returns the call that an object represents; none for other objects.
pub(super) fn one(object: &Map<String, Value>) -> Option<Call> {
    for (wrapper, arguments, id) in [("functionCall", "args", "id"), ("toolUse", "input", "toolUseId")] {
        if let Some(inner) = object.get(wrapper).and_then(Value::as_object) {
            let name = first_text(inner, &["name"])?;
            return Some(Call::new(name, inner.get(arguments), first_text(inner, &[id])));
        }
    }
    let id = first_text(object, &["call_id", "id", "toolCallId", "tool_call_id"]);
    if let Some(function) = object.get("function").and_then(Value::as_object) {
        // A tool's definition has parameters where a call has arguments.
        if function.contains_key("parameters") || function.contains_key("description") {
            return None;
        }
        return Some(Call::new(first_text(function, &["name"])?, function.get("arguments"), id));
    }
    let arguments = first(object, &["arguments", "args", "input"]);
    match object.get("type").and_then(Value::as_str) {
        Some(
            "tool_call" | "tool_use" | "function_call" | "tool-call" | "server_tool_use" | "mcp_call"
            | "custom_tool_call",
        ) => Some(Call::new(first_text(object, &["name", "toolName", "tool_name"])?, arguments, id)),
        Some("function") | None => {
            let name = first_text(object, &["toolName", "tool_name"])
                .or_else(|| first_text(object, &["name"]).filter(|_| arguments.is_some() && id.is_some()))?;
            Some(Call::new(name, arguments, id))
        }
        Some(_) => None,
    }
}

/// Returns the calls of a message outside its content.
pub(super) fn of_message(object: &Map<String, Value>) -> Vec<Call> {
    let mut calls = Vec::new();
    for name in ["tool_calls", "toolCalls"] {
        if let Some(list) = object.get(name).and_then(Value::as_array) {
            calls.extend(list.iter().take(MAX_CALLS).filter_map(|it| listed(it.as_object()?)));
        }
    }
    if let Some(call) = object.get("function_call").and_then(Value::as_object)
        && let Some(name) = first_text(call, &["name"])
    {
        calls.push(Call::new(name, call.get("arguments"), None));
    }
    calls
}

/// Returns a call from a list of calls only, where a name suffices.
fn listed(object: &Map<String, Value>) -> Option<Call> {
    one(object).or_else(|| {
        let name = first_text(object, &["name", "tool"])?;
        let arguments = first(object, &["arguments", "args", "input", "parameters"]);
        Some(Call::new(name, arguments, first_text(object, &["id", "call_id"])))
    })
}

/// Returns the calls of a list; none if the list contains anything else.
pub(super) fn list(value: &Value) -> Option<Vec<Call>> {
    let items = value.as_array().filter(|it| !it.is_empty())?;
    items.iter().take(MAX_CALLS).map(|it| listed(it.as_object()?)).collect()
}

/// Parses arguments that were sent as the text of a JSON object or of null; other values stay unchanged.
fn unpacked(arguments: &Value) -> Value {
    match arguments {
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(object @ (Value::Object(_) | Value::Null)) => object,
            _ => arguments.clone(),
        },
        other => other.clone(),
    }
}

/// Returns the arguments of a tool span: its input without the wrappers of frameworks.
pub(super) fn arguments_of_span(input: &Value, name: &str) -> Value {
    let Some(object) = input.as_object() else { return input.clone() };
    if let Some(inner) = object.get("inputs").filter(|it| it.is_object() && object.contains_key("input_str"))
    {
        return inner.clone();
    }
    match (object.get("args").and_then(Value::as_array), object.get("kwargs")) {
        (Some(args), Some(kwargs)) if object.len() == 2 => {
            let named = kwargs.as_object().is_some_and(|it| !it.is_empty());
            let args: Vec<&Value> = args.iter().filter(|it| it.as_str() != Some(name)).collect();
            match args.as_slice() {
                [] => kwargs.clone(),
                [only @ Value::Object(_)] if !named => (*only).clone(),
                _ => input.clone(),
            }
        }
        _ => input.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_shape_is_the_same_call() {
        for value in [
            json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}),
            json!({"id": "c", "function": {"name": "functions.f", "arguments": {"a": 1}}}),
            json!({"id": "c", "type": "tool_use", "name": "f", "input": {"a": 1}}),
            json!({"id": "c", "type": "tool_call", "name": "f", "arguments": {"a": 1}}),
            json!({"id": "c", "type": "tool_call", "name": "f", "args": {"a": 1}}),
            json!({"id": "fc", "call_id": "c", "type": "function_call", "name": "f", "arguments": "{\"a\":1}"}),
            json!({"toolCallId": "c", "toolName": "f", "input": "{\"a\": 1}"}),
            json!({"toolUse": {"toolUseId": "c", "name": "f", "input": {"a": 1}}}),
            json!({"functionCall": {"id": "c", "name": "f", "args": {"a": 1}}}),
            json!({"id": "c", "name": "f", "arguments": "{\"a\":1}"}),
        ] {
            let call = one(value.as_object().unwrap()).unwrap_or_else(|| panic!("{value}"));
            assert_eq!((call.name.as_str(), call.id.as_deref()), ("f", Some("c")), "{value}");
            assert_eq!(call.arguments, json!({"a": 1}), "{value}");
        }
    }

    #[test]
    fn definitions_and_documents_are_not_calls() {
        for value in [
            json!({"type": "function", "function": {"name": "f", "parameters": {}}}),
            json!({"type": "function", "name": "f", "parameters": {}}),
            json!({"id": "doc", "content": "text"}),
            json!({"name": "f"}),
        ] {
            assert_eq!(one(value.as_object().unwrap()), None, "{value}");
        }
    }

    #[test]
    fn spans_of_tools_are_unwrapped() {
        for (input, expected) in [
            (json!({"a": 1}), json!({"a": 1})),
            (json!({"args": ["f", {"a": 1}], "kwargs": {}}), json!({"a": 1})),
            (json!({"args": [], "kwargs": {"a": 1}}), json!({"a": 1})),
            (json!({"input_str": "{'a': 1}", "inputs": {"a": 1}, "tags": []}), json!({"a": 1})),
            (json!("Zürich"), json!("Zürich")),
        ] {
            assert_eq!(arguments_of_span(&input, "f"), expected, "{input}");
        }
    }
}
