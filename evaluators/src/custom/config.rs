//! The config of evaluators that tenants declare: its schema, and configs held to it.

use serde_json::{Map, Value, json};

use crate::{
    definition::{ConfigProblem, with_threshold},
    schema::{self, Schema},
};

/// The schema of the config, complete: what was declared, or nothing, and `threshold`, which all
/// have.
pub fn options(declared: Option<&Map<String, Value>>) -> Value {
    with_threshold(match declared {
        Some(schema) => Value::Object(schema.clone()),
        None => json!({"type": "object", "additionalProperties": false}),
    })
}

/// Whether a config can be declared so.
///
/// # Errors
/// With what is wrong, with paths that begin with `config_schema`: it must be a JSON Schema, and one
/// of objects.
pub fn declare(declared: &Map<String, Value>) -> Result<(), Vec<ConfigProblem>> {
    let problem = |field: &str, message: &str| Err(vec![ConfigProblem::new(field, message)]);
    if declared.get("type").is_some_and(|it| it != "object") {
        return problem("config_schema.type", "must be object: a config is an object of options");
    }
    if declared.get("properties").is_some_and(|it| !it.is_object()) {
        return problem("config_schema.properties", "must be an object: a schema for each option");
    }
    if declared.get("properties").is_some_and(|it| it.get("threshold").is_some()) {
        return problem(
            "config_schema.properties.threshold",
            "is not yours to declare: every evaluator has it, a number from 0 to 1 that labels follow",
        );
    }
    Schema::compile(&options(Some(declared)), None, false, "config_schema").map(drop)
}

/// Holds a config to what was declared.
///
/// # Errors
/// With every problem, with paths below the config.
pub fn check(
    declared: Option<&Map<String, Value>>,
    config: &Map<String, Value>,
) -> Result<(), Vec<ConfigProblem>> {
    schema::check_config(&options(declared), config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn without_a_declaration_there_is_but_the_threshold() {
        assert_eq!(check(None, &object(json!({"threshold": 0.5}))), Ok(()));
        assert_eq!(check(None, &Map::new()), Ok(()));
        assert_eq!(check(None, &object(json!({"threshold": "x"}))).unwrap_err()[0].field, "threshold");
        assert_eq!(check(None, &object(json!({"tone": "x"}))).unwrap_err()[0].field, "tone");
    }

    #[test]
    fn configs_are_held_to_their_declaration() {
        let declared =
            object(json!({"properties": {"tone": {"enum": ["formal", "plain"]}}, "required": ["tone"]}));
        assert_eq!(declare(&declared), Ok(()));
        assert_eq!(check(Some(&declared), &object(json!({"tone": "plain", "threshold": 1}))), Ok(()));
        let problems = check(Some(&declared), &Map::new()).unwrap_err();
        assert_eq!((problems[0].field.as_str(), problems[0].message.as_str()), ("tone", "is required"));
        assert_eq!(check(Some(&declared), &object(json!({"tone": 1}))).unwrap_err()[0].field, "tone");
    }

    #[test]
    fn what_is_no_schema_of_objects_is_refused() {
        let field = |schema: Value| declare(&object(schema)).unwrap_err().remove(0).field;
        assert_eq!(field(json!({"type": "string"})), "config_schema.type");
        assert_eq!(field(json!({"properties": [1]})), "config_schema.properties");
        assert_eq!(field(json!({"properties": {"a": {"type": "text"}}})), "config_schema.properties.a.type");
        assert_eq!(field(json!({"$ref": "https://example.com/a"})), "config_schema");
    }
}
