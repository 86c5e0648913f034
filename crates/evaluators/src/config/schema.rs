//! JSON Schemas of options.

use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform},
};
use serde_json::{Map, Value, json};

/// Returns the JSON Schema of the options of a type, without references.
pub(crate) fn schema_of<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|it| {
        it.inline_subschemas = true;
        it.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(simplify).transform(&mut schema);
    schema.as_object().cloned().unwrap_or_default()
}

/// Returns the schema of an object that has the options of all these schemas and no others.
pub(crate) fn object_schema(parts: impl IntoIterator<Item = Map<String, Value>>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for mut part in parts {
        if let Some(Value::Object(own)) = part.remove("properties") {
            for (name, option) in own {
                properties.entry(name).or_insert(option);
            }
        }
        if let Some(Value::Array(own)) = part.remove("required") {
            required.extend(own);
        }
    }
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    schema
}

/// Removes from a schema what describes the Rust type and not the option.
fn simplify(schema: &mut Schema) {
    let Some(schema) = schema.as_object_mut() else { return };
    for name in ["title", "format"] {
        schema.remove(name);
    }
    for (name, default) in
        [("items", json!(true)), ("additionalProperties", json!(true)), ("default", Value::Null)]
    {
        if schema.get(name) == Some(&default) {
            schema.remove(name);
        }
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    remove_null(schema);
    if let Some(words) = schema.get("oneOf").and_then(constants) {
        schema.remove("oneOf");
        schema.insert("enum".to_owned(), words);
    }
    // The values have types; a second error for the type would say less.
    if schema.contains_key("enum") {
        schema.remove("type");
    }
}

/// Removes null from the allowed values: an option is omitted, never null.
fn remove_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|it| it != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|it| !it.is_null());
    }
    if let Some(Value::Array(alternatives)) = schema.get_mut("anyOf") {
        alternatives.retain(|it| it["type"] != "null");
        if let [Value::Object(only)] = alternatives.as_mut_slice() {
            let only = std::mem::take(only);
            schema.remove("anyOf");
            for (name, value) in only {
                schema.entry(name).or_insert(value);
            }
        }
    }
}

/// Returns the values of alternatives that are constants.
fn constants(alternatives: &Value) -> Option<Value> {
    alternatives
        .as_array()?
        .iter()
        .map(|it| it.get("const").cloned())
        .collect::<Option<Vec<_>>>()
        .map(Value::Array)
}
