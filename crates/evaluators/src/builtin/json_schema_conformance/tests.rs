//! Worked examples.

use serde_json::{Value, json};

use super::*;
use crate::{CompiledEvaluator, Verdict};

fn compile(config: Value) -> CompiledEvaluator {
    DEFINITION.compile(config.as_object().unwrap()).unwrap()
}

fn evaluate(config: Value, output: &str) -> Result<Verdict, NotEvaluated> {
    compile(config).evaluate(&Subject { output: Some(output.into()), ..Subject::default() })
}

fn person() -> Value {
    json!({"schema": {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["name"]}})
}

#[test]
fn conforming_json_is_good_and_other_text_is_bad() {
    let check = |output: &str, score: f64, part: &str| {
        let verdict = evaluate(person(), output).unwrap();
        assert_eq!(verdict.score, score, "{output}");
        assert!(verdict.reasoning.contains(part), "{}", verdict.reasoning);
    };
    check(r#" {"name": "Ada", "age": 36} "#, 1.0, "conforms");
    check(r#"{"age": "36"}"#, 0.0, "/age is not of type integer");
    check(r#"{"age": 36}"#, 0.0, "it lacks \"name\"");
    check(r#"{"name": "Ada""#, 0.0, "is not JSON: EOF");
    check("Sure! {\"name\": \"Ada\"}", 0.0, "is not JSON");
    check("", 0.0, "is not JSON");
    check("```json\n{\"name\": \"Ada\"}\n```", 0.0, "is not JSON");
}

#[test]
fn fenced_block_is_read_with_the_option() {
    let config = || json!({"schema": {"type": "object"}, "extract": true});
    assert_eq!(evaluate(config(), "Here:\n```json\n{}\n```\nBye").unwrap().score, 1.0);
    assert_eq!(evaluate(config(), "{}").unwrap().score, 1.0);
    let two = evaluate(config(), "```json\n{}\n```\n```json\n{}\n```").unwrap();
    assert_eq!((two.score, two.reasoning.contains("more than one")), (0.0, true));
    assert!(
        evaluate(config(), "```json\n{\n```").unwrap().reasoning.contains("the fenced block is not JSON")
    );
    assert!(evaluate(config(), "nothing").unwrap().reasoning.contains("the text is not JSON"));
}

#[test]
fn incomparable_json_is_not_evaluated() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for output in [deep.as_str(), "1e999999", "\"\\udc00\""] {
        let why = evaluate(json!({"schema": true}), output).unwrap_err();
        assert!(why.reason.contains("is JSON, but"), "{why}");
    }
    let none = compile(json!({"schema": true})).evaluate(&Subject::default()).unwrap_err();
    assert!(none.reason.contains("has no output"), "{none}");
}

#[test]
fn draft_of_schema_precedes_draft_option() {
    // In draft 4 exclusiveMinimum is a boolean beside minimum.
    let four = json!({"minimum": 1, "exclusiveMinimum": true});
    assert_eq!(evaluate(json!({"schema": four, "draft": "draft4"}), "1").unwrap().score, 0.0);
    let named =
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": true});
    assert_eq!(evaluate(json!({"schema": named, "draft": "2020-12"}), "1").unwrap().score, 0.0);
    let problems = DEFINITION.check(json!({"schema": four}).as_object().unwrap()).unwrap_err();
    assert_eq!(problems[0].field, "schema.exclusiveMinimum");
}

#[test]
fn formats_are_checked_with_the_option() {
    let schema = json!({"format": "email"});
    assert_eq!(evaluate(json!({"schema": schema}), "\"x\"").unwrap().score, 1.0);
    assert_eq!(evaluate(json!({"schema": schema, "formats": true}), "\"x\"").unwrap().score, 0.0);
    let named = json!({"$schema": "http://json-schema.org/draft-07/schema#", "format": "email"});
    assert_eq!(evaluate(json!({"schema": named}), "\"x\"").unwrap().score, 1.0);
}

#[test]
fn invalid_config_problem_names_field() {
    let check = |config: Value, field: &str, part: &str| {
        let problems = DEFINITION.check(config.as_object().unwrap()).unwrap_err();
        assert_eq!(problems[0].field, field, "{problems:?}");
        assert!(problems[0].message.contains(part), "{problems:?}");
    };
    check(json!({}), "schema", "is required");
    check(json!({"schema": 1}), "schema", "is of none of the types");
    check(json!({"schema": true, "threshold": 2}), "threshold", "is above 1");
    check(json!({"schema": true, "shema": true}), "shema", "is not an option; options are");
    check(json!({"schema": true, "draft": "draft3"}), "draft", "is not one of");
    check(json!({"schema": true, "target": "prompt"}), "target", "is not one of");
    check(json!({"schema": {"type": 3}}), "schema.type", "matches none of the alternatives");
}

#[test]
fn ten_megabytes_of_json_are_evaluated() {
    let output = format!("[{}1]", "1,".repeat(5_000_000));
    assert_eq!(evaluate(json!({"schema": {"type": "array"}}), &output).unwrap().score, 1.0);
    assert_eq!(evaluate(json!({"schema": {"type": "object"}}), &output).unwrap().score, 0.0);
    assert_eq!(evaluate(json!({"schema": true}), &"x".repeat(10_000_000)).unwrap().score, 0.0);
}
