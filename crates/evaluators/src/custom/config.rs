//! The config of custom evaluators: its schema, and the validation of configs.

use serde_json::{Map, Value, json};

use crate::{
    config::{ConfigProblem, with_shared_options},
    judge::Instructions,
    schema::{self, Schema},
};

/// Returns the complete schema of the config: the declared schema, if any, and `threshold`, which every
/// evaluator has.
pub fn options(declared: Option<&Map<String, Value>>) -> Value {
    with_shared_options(match declared {
        Some(schema) => Value::Object(schema.clone()),
        None => json!({"type": "object", "additionalProperties": false}),
    })
}

/// Checks that a config schema can be declared.
///
/// # Errors
/// Returns the problems, with paths that begin with `config_schema`: the value must be a JSON Schema of an object.
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
            "can't be declared: every evaluator has this option, a number from 0 to 1 that decides the label",
        );
    }
    Schema::compile(&options(Some(declared)), None, false, "config_schema").map(drop)
}

/// Checks that the instructions refer only to options that a config can have.
///
/// # Errors
/// Returns a problem for each option that a config cannot have.
pub fn check_config_keys(
    instructions: &Instructions,
    declared: Option<&Map<String, Value>>,
) -> Result<(), Vec<ConfigProblem>> {
    let options = options(declared);
    let is_open = options["additionalProperties"] != false || options.get("patternProperties").is_some();
    let problems: Vec<ConfigProblem> = instructions
        .config_keys()
        // The first segment of a path is the name of the option.
        .map(|key| key.split('.').next().unwrap_or(key))
        .filter(|key| !is_open && options["properties"].get(key).is_none())
        .map(|key| {
            let message =
                format!("refers to the option {{{{config.{key}}}}}: declare it in config_schema.properties");
            ConfigProblem::new("rubric", message)
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Validates a config against the declared schema.
///
/// # Errors
/// Returns all problems, with paths below the config.
pub fn check(
    declared: Option<&Map<String, Value>>,
    config: &Map<String, Value>,
) -> Result<(), Vec<ConfigProblem>> {
    schema::check_config(&options(declared), config, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn options_that_a_rubric_names_are_declared() {
        let instructions =
            crate::custom::llm::compile("{{output}} {{config.tone.kind?}} {{config.threshold}}", None)
                .unwrap();
        let named = |declared: Option<Value>| check_config_keys(&instructions, declared.map(object).as_ref());
        assert_eq!(
            named(None).unwrap_err()[0].message,
            "refers to the option {{config.tone}}: declare it in config_schema.properties"
        );
        assert!(named(Some(json!({"additionalProperties": false, "properties": {"mood": {}}}))).is_err());
        assert_eq!(
            named(Some(json!({"properties": {"tone": {"type": "object"}}, "additionalProperties": false}))),
            Ok(())
        );
        assert_eq!(
            named(Some(json!({"properties": {}}))),
            Ok(()),
            "a schema without a declared property accepts it"
        );
        let declared = object(json!({"properties": {"threshold": {"type": "string"}}}));
        assert_eq!(declare(&declared).unwrap_err()[0].field, "config_schema.properties.threshold");
    }

    #[test]
    fn config_without_options_accepts_only_the_threshold() {
        assert_eq!(check(None, &object(json!({"threshold": 0.5}))), Ok(()));
        assert_eq!(check(None, &Map::new()), Ok(()));
        assert_eq!(check(None, &object(json!({"threshold": "x"}))).unwrap_err()[0].field, "threshold");
        assert_eq!(check(None, &object(json!({"tone": "x"}))).unwrap_err()[0].field, "tone");
    }

    #[test]
    fn configs_are_validated_against_their_schema() {
        let declared =
            object(json!({"properties": {"tone": {"enum": ["formal", "plain"]}}, "required": ["tone"]}));
        assert_eq!(declare(&declared), Ok(()));
        assert_eq!(check(Some(&declared), &object(json!({"tone": "plain", "threshold": 1}))), Ok(()));
        let problems = check(Some(&declared), &Map::new()).unwrap_err();
        assert_eq!((problems[0].field.as_str(), problems[0].message.as_str()), ("tone", "is required"));
        assert_eq!(check(Some(&declared), &object(json!({"tone": 1}))).unwrap_err()[0].field, "tone");
    }

    #[test]
    fn schema_of_other_types_is_rejected() {
        let field = |schema: Value| declare(&object(schema)).unwrap_err().remove(0).field;
        assert_eq!(field(json!({"type": "string"})), "config_schema.type");
        assert_eq!(field(json!({"properties": [1]})), "config_schema.properties");
        assert_eq!(field(json!({"properties": {"a": {"type": "text"}}})), "config_schema.properties.a.type");
        assert_eq!(field(json!({"$ref": "https://example.com/a"})), "config_schema");
    }
}
