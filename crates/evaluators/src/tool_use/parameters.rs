//! JSON Schemas of tool arguments: the validator, and the properties of single arguments.

use serde_json::{Map, Value};

use crate::{
    schema::{Schema, SchemaCheck},
    subject::Tool,
};

/// Maximum number of references that are followed in a chain.
const MAX_REFERENCE_CHAIN: usize = 16;
/// Maximum nesting of a schema that is normalized.
const MAX_SCHEMA_DEPTH: usize = 64;

/// Converts the notations of providers to standard JSON Schema: types in capital letters and `nullable`
/// (Gemini, OpenAPI).
pub(crate) fn normalized(schema: &Value) -> Value {
    rewritten(schema, 0)
}

fn rewritten(schema: &Value, depth: usize) -> Value {
    match schema {
        Value::Object(object) if depth < MAX_SCHEMA_DEPTH => {
            let mut out = Map::new();
            for (key, value) in object {
                let value = match (key.as_str(), value) {
                    ("type", Value::String(word)) => Value::String(lower(word)),
                    // Members that contain data, not schemas.
                    ("default" | "enum" | "const" | "examples" | "example", value) => value.clone(),
                    (_, value) => rewritten(value, depth + 1),
                };
                out.insert(key.clone(), value);
            }
            if out.get("nullable") == Some(&Value::Bool(true))
                && let Some(Value::String(word)) = out.get("type").cloned()
            {
                out.insert("type".to_owned(), serde_json::json!([word, "null"]));
            }
            Value::Object(out)
        }
        Value::Array(items) if depth < MAX_SCHEMA_DEPTH => {
            Value::Array(items.iter().map(|it| rewritten(it, depth + 1)).collect())
        }
        other => other.clone(),
    }
}

fn lower(word: &str) -> String {
    const JSON_TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
    let lower = word.to_ascii_lowercase();
    if JSON_TYPES.contains(&lower.as_str()) { lower } else { word.to_owned() }
}

/// The compiled schema of a tool's arguments. Without a schema, the arguments only have to be an object.
pub(crate) struct Parameters(Option<Schema>);

impl Parameters {
    /// Compiles the schema of a tool's arguments.
    ///
    /// # Errors
    /// Returns the reason why the schema cannot be used.
    pub(crate) fn of(tool: &Tool, formats: bool) -> Result<Self, String> {
        let Some(schema) = &tool.schema else { return Ok(Self(None)) };
        let compiled = Schema::compile(&normalized(schema), None, formats, "");
        compiled
            .map(|it| Self(Some(it)))
            .map_err(|problems| problems.into_iter().map(|it| it.message).next().unwrap_or_default())
    }

    /// Returns the reason why arguments are invalid; none if they are valid.
    ///
    /// # Errors
    /// Fails when validation takes too many steps.
    pub(crate) fn invalid(&self, arguments: &Value) -> Result<Option<String>, String> {
        let empty = Value::Object(Map::new());
        let arguments = if arguments.is_null() { &empty } else { arguments };
        if !arguments.is_object() {
            return Ok(Some("the arguments are not a JSON object".to_owned()));
        }
        let Some(schema) = &self.0 else { return Ok(None) };
        match schema.check(arguments, arguments.to_string().len()) {
            SchemaCheck::Conforms => Ok(None),
            SchemaCheck::Fails(failures, more) => {
                let mut reasons: Vec<String> = failures.iter().take(3).map(|it| it.sentence()).collect();
                let more = more + failures.len().saturating_sub(3);
                if more > 0 {
                    reasons.push(format!("{more} more"));
                }
                Ok(Some(reasons.join(", ")))
            }
            SchemaCheck::TooManySteps => Err("it takes too many steps to check".to_owned()),
        }
    }
}

/// The properties that a schema gives a value, with its references and alternatives combined.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParameterSchemas<'a> {
    root: Option<&'a Value>,
    parts: Vec<&'a Map<String, Value>>,
}

impl<'a> ParameterSchemas<'a> {
    /// Returns the properties for the schema of a tool's arguments.
    pub(crate) fn of(schema: Option<&'a Value>) -> Self {
        let mut schemas = Self { root: schema, parts: Vec::new() };
        if let Some(schema) = schema {
            schemas.add(schema, 0);
        }
        schemas
    }

    fn add(&mut self, schema: &'a Value, depth: usize) {
        let Some(object) = schema.as_object() else { return };
        if depth > MAX_REFERENCE_CHAIN || self.parts.len() > 64 {
            return;
        }
        self.parts.push(object);
        if let Some(target) = object.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix('#'))
            && let Some(target) = self.root.and_then(|it| it.pointer(target))
        {
            self.add(target, depth + 1);
        }
        for name in ["allOf", "anyOf", "oneOf"] {
            for part in object.get(name).and_then(Value::as_array).into_iter().flatten() {
                self.add(part, depth + 1);
            }
        }
    }

    fn below(&self, schemas: impl Iterator<Item = &'a Value>) -> Self {
        let mut combined = Self { root: self.root, parts: Vec::new() };
        schemas.for_each(|it| combined.add(it, 0));
        combined
    }

    /// Returns the properties of a member of the object.
    pub(crate) fn member(&self, name: &str) -> Self {
        self.below(self.parts.iter().filter_map(|it| it.get("properties")?.get(name)))
    }

    /// Returns the properties of the items of the list.
    pub(crate) fn item(&self) -> Self {
        self.below(self.parts.iter().filter_map(|it| it.get("items")))
    }

    /// Returns the default value.
    pub(crate) fn default(&self) -> Option<&'a Value> {
        self.parts.iter().find_map(|it| it.get("default"))
    }

    /// Returns whether the object requires a member of this name.
    pub(crate) fn requires(&self, name: &str) -> bool {
        let lists = self.parts.iter().filter_map(|it| it.get("required")?.as_array());
        lists.flatten().any(|it| it.as_str() == Some(name))
    }

    /// Returns whether the schema allows a value of this type; none if the schema names no types.
    pub(crate) fn allows(&self, word: &str) -> Option<bool> {
        let mut found = None;
        for part in &self.parts {
            let words: Vec<&str> = match part.get("type") {
                Some(Value::String(one)) => vec![one],
                Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
                _ => continue,
            };
            let fits = words.iter().any(|it| *it == word || (word == "number" && *it == "integer"));
            found = Some(found.unwrap_or(false) || fits);
        }
        found
    }

    /// Returns whether the schema declares this format.
    pub(crate) fn is_format(&self, name: &str) -> bool {
        self.parts.iter().any(|it| it.get("format").and_then(Value::as_str) == Some(name))
    }

    /// Returns whether the schema allows only certain words.
    pub(crate) fn has_words(&self) -> bool {
        self.parts.iter().any(|it| it.contains_key("enum") || it.contains_key("const"))
    }

    /// Returns the name of the member, if the object may have only one.
    pub(crate) fn only_member(&self) -> Option<&'a str> {
        let mut names = self.parts.iter().filter_map(|it| it.get("properties")?.as_object());
        let members = names.next()?;
        match (members.len(), names.next()) {
            (1, None) => members.keys().next().map(String::as_str),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dialects_of_providers_are_json_schema() {
        let given = json!({"type": "OBJECT", "properties": {"type": {"type": "STRING", "nullable": true, "enum": ["STRING"]}}});
        let expected = json!({"type": "object", "properties": {"type": {"type": ["string", "null"], "nullable": true, "enum": ["STRING"]}}});
        assert_eq!(normalized(&given), expected);
    }

    #[test]
    fn arguments_are_validated_against_the_schema() {
        let tool = |schema| Tool { name: "f".to_owned(), schema: Some(schema), ..Tool::default() };
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
        let parameters = Parameters::of(&tool(schema), true).unwrap();
        assert_eq!(parameters.invalid(&json!({"a": 5.0})), Ok(None));
        for wrong in [json!({"a": "5"}), json!({}), json!({"a": 5.5}), json!("a"), json!(null)] {
            assert!(parameters.invalid(&wrong).unwrap().is_some(), "{wrong}");
        }
        assert!(Parameters::of(&tool(json!({"type": "nonsense"})), true).is_err());
    }

    #[test]
    fn references_and_alternatives_are_taken_together() {
        let schema = json!({
            "$defs": {"Unit": {"type": "string", "default": "c"}, "Loop": {"$ref": "#/$defs/Loop"}},
            "properties": {
                "unit": {"anyOf": [{"$ref": "#/$defs/Unit"}, {"type": "null"}]},
                "loop": {"$ref": "#/$defs/Loop"},
            },
            "required": ["unit"],
        });
        let schemas = ParameterSchemas::of(Some(&schema));
        let unit = schemas.member("unit");
        assert_eq!((unit.allows("null"), unit.allows("number")), (Some(true), Some(false)));
        assert_eq!(unit.default(), Some(&json!("c")));
        assert!(schemas.requires("unit") && !schemas.requires("loop"));
        assert_eq!(schemas.member("loop").allows("string"), None);
        assert_eq!(schemas.member("none").allows("string"), None);
    }
}
