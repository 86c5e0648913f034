//! Tools that were offered to a model, with the schemas of their arguments.

use serde_json::{Map, Value};

use super::{
    Step, Subject,
    json::{Budget, first, first_text, indexed},
};

/// Maximum number of tools that are read from one trace.
const MAX_TOOLS: usize = 500;

/// A tool that was offered to a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tool {
    /// The name of the tool.
    pub name: String,
    /// The description that the model received.
    pub description: Option<String>,
    /// The JSON Schema of the arguments; none if the trace does not contain it.
    pub schema: Option<Value>,
}

impl Tool {
    /// Fills missing fields from another definition of the tool.
    fn complete(&mut self, other: Self) {
        self.description = self.description.take().or(other.description);
        self.schema = self.schema.take().or(other.schema);
    }
}

impl std::fmt::Display for Tool {
    /// Formats the tool for a judge.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        if let Some(description) = &self.description {
            write!(f, ": {description}")?;
        }
        match &self.schema {
            Some(schema) => write!(f, "\narguments: {schema}"),
            None => Ok(()),
        }
    }
}

/// Returns the tools in a list, a request or a single definition, in the format of any provider.
pub(crate) fn read(value: &Value) -> Vec<Tool> {
    let mut tools = Vec::new();
    collect(value, &mut tools, 0);
    tools
}

fn collect(value: &Value, tools: &mut Vec<Tool>, depth: usize) {
    if depth > 3 || tools.len() >= MAX_TOOLS {
        return;
    }
    match value {
        Value::Array(items) => items.iter().take(MAX_TOOLS).for_each(|it| collect(it, tools, depth + 1)),
        // Some senders send a list of JSON texts, others only names.
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => collect(&inner, tools, depth + 1),
            _ if is_name(text) && depth > 0 => {
                tools.push(Tool { name: text.clone(), ..Tool::default() });
            }
            _ => {}
        },
        Value::Object(object) => {
            for wrapper in ["function_declarations", "functionDeclarations"] {
                if let Some(list) = object.get(wrapper) {
                    return collect(list, tools, depth + 1);
                }
            }
            if let Some(tool) = one(object) {
                tools.push(tool);
            } else if depth == 0 {
                // A map by name, as the Vercel AI SDK sends it.
                for (name, inner) in object {
                    if let Some(inner) = inner.as_object()
                        && (inner.contains_key("description") || schema(inner).is_some())
                    {
                        tools.push(described(name, inner));
                    }
                }
            }
        }
        _ => {}
    }
}

fn one(object: &Map<String, Value>) -> Option<Tool> {
    for wrapper in ["function", "toolSpec", "tool"] {
        if let Some(inner) = object.get(wrapper).and_then(Value::as_object) {
            return first_text(inner, &["name"]).map(|name| described(name, inner));
        }
    }
    match first_text(object, &["name"]) {
        Some(name) => Some(described(name, object)),
        // A tool of the provider itself, such as `{"type": "web_search"}`.
        None => first_text(object, &["type"])
            .filter(|kind| *kind != "function" && *kind != "object" && is_name(kind))
            .map(|kind| Tool { name: kind.to_owned(), ..Tool::default() }),
    }
}

fn described(name: &str, object: &Map<String, Value>) -> Tool {
    Tool {
        name: name.to_owned(),
        description: first_text(object, &["description"]).map(str::to_owned),
        schema: schema(object),
    }
}

fn schema(object: &Map<String, Value>) -> Option<Value> {
    let found = first(
        object,
        &[
            "parameters",
            "input_schema",
            "inputSchema",
            "parameters_json_schema",
            "parametersJsonSchema",
            "json_schema",
            "args_schema",
        ],
    )?;
    let found = match found {
        Value::String(text) => serde_json::from_str(text).ok()?,
        other => other.clone(),
    };
    // The wrappers of Amazon and of the AI SDK.
    let inner = found.get("json").or_else(|| found.get("jsonSchema")).filter(|it| it.is_object()).cloned();
    Some(inner.unwrap_or(found)).filter(Value::is_object)
}

fn is_name(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'.' | b':' | b'/'))
}

/// Returns all tools of a trace, each once: those in the trace's metadata first, then those in spans.
pub(super) fn of(subject: &Subject, budget: &mut Budget) -> Vec<Tool> {
    let mut found = Vec::new();
    of_metadata(&subject.metadata, budget, &mut found);
    of_request(subject.input.as_deref(), budget, &mut found);
    for step in &subject.steps {
        of_metadata(&step.metadata, budget, &mut found);
        of_request(step.input.as_deref(), budget, &mut found);
    }
    let mut tools: Vec<Tool> = Vec::new();
    for tool in found {
        match tools.iter().position(|it| it.name == tool.name) {
            Some(at) => tools[at].complete(tool),
            None if tools.len() < MAX_TOOLS => tools.push(tool),
            None => {}
        }
    }
    // A tool span's own description contains less than the definition that the model received.
    for step in &subject.steps {
        if let Some(own) = of_span(step)
            && let Some(known) = tools.iter_mut().find(|it| it.name == own.name)
        {
            known.complete(own);
        }
    }
    tools
}

fn of_metadata(metadata: &Map<String, Value>, budget: &mut Budget, found: &mut Vec<Tool>) {
    const LIST_MEMBERS: &[&str] = &[
        "gen_ai.tool.definitions",
        "gen_ai.request.tools",
        "ai.prompt.tools",
        "llm.openai.tools",
        "available_tools",
        "tools",
        "functions",
    ];
    const PARAMETER_MEMBERS: &[&str] = &[
        "llm.invocation_parameters",
        "model_request_parameters",
        "langfuse.observation.model.parameters",
        "request_data",
    ];
    let before = found.len();
    for name in LIST_MEMBERS {
        if let Some(value) = metadata.get(*name) {
            let unpacked = budget.unpacked(value);
            collect(unpacked.as_ref().unwrap_or(value), found, 0);
        }
    }
    for members in indexed(metadata, "llm.tools") {
        if let Some(value) = first(&members, &["tool.json_schema", "json_schema", ""]) {
            collect(value, found, 1);
        }
    }
    for members in indexed(metadata, "llm.request.functions") {
        if let Some(tool) = one(&members) {
            found.push(tool);
        }
    }
    if found.len() > before {
        return;
    }
    for name in PARAMETER_MEMBERS {
        if let Some(Value::Object(request)) = metadata.get(*name).and_then(|it| budget.unpacked(it)) {
            of_object(&request, found);
        }
    }
}

/// Adds the tools in the text of a request.
fn of_request(input: Option<&str>, budget: &mut Budget, found: &mut Vec<Tool>) {
    let Some(input) = input.filter(|it| it.contains("tools") || it.contains("functions")) else { return };
    if let Some(Value::Object(request)) = budget.parse(input) {
        of_object(&request, found);
    }
}

fn of_object(request: &Map<String, Value>, found: &mut Vec<Tool>) {
    for name in ["tools", "functions", "function_tools", "output_tools"] {
        if let Some(list) = request.get(name).filter(|it| it.is_array() || it.is_object()) {
            collect(list, found, 0);
        }
    }
    if let Some(list) = request.get("toolConfig").and_then(|it| it.get("tools")) {
        collect(list, found, 0);
    }
}

fn of_span(step: &Step) -> Option<Tool> {
    let name = step.metadata.get("tool")?.get("name")?.as_str()?;
    let schema = first(&step.metadata, &["tool.json_schema", "tool.parameters"]).and_then(|it| match it {
        Value::String(text) => serde_json::from_str(text).ok(),
        other => Some(other.clone()),
    });
    Some(Tool {
        name: name.to_owned(),
        description: first_text(&step.metadata, &["tool.description", "gen_ai.tool.description"])
            .map(str::to_owned),
        // `{"type": "object"}` contains no information.
        schema: schema.filter(|it: &Value| it.get("properties").is_some()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_shape_is_the_same_tool() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "number"}}});
        let expected =
            [Tool { name: "f".to_owned(), description: Some("d".to_owned()), schema: Some(schema.clone()) }];
        for value in [
            json!([{"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}]),
            json!([{"type": "function", "name": "f", "description": "d", "parameters": schema}]),
            json!([{"name": "f", "description": "d", "input_schema": schema}]),
            json!([{"name": "f", "description": "d", "inputSchema": {"jsonSchema": schema}}]),
            json!([{"name": "f", "description": "d", "parameters_json_schema": schema}]),
            json!([{"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": schema}}}]),
            json!([{"functionDeclarations": [{"name": "f", "description": "d", "parameters": schema}]}]),
            json!([json!({"name": "f", "description": "d", "inputSchema": schema}).to_string()]),
            json!({"f": {"description": "d", "inputSchema": schema}}),
            json!({"name": "f", "description": "d", "parameters": schema.to_string()}),
        ] {
            assert_eq!(read(&value), expected, "{value}");
        }
    }

    #[test]
    fn tool_names_and_built_in_tools_are_recognized() {
        let names: Vec<String> =
            read(&json!(["f", {"type": "web_search"}, "no name", 1])).into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["f", "web_search"]);
        assert_eq!(read(&json!("text")), []);
    }
}
