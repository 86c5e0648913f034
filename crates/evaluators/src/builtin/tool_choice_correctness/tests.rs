//! Tests of called tools compared with expected and forbidden tools.

use serde_json::json;

use super::*;
use crate::subject::Step;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other}"),
    }
}

/// Returns a trace that called these tools.
fn called(names: &[&str]) -> Subject {
    let steps = names
        .iter()
        .map(|name| Step { name: (*name).to_owned(), kind: api::SpanType::Tool, ..Step::default() })
        .collect();
    Subject { output: Some("Done.".to_owned()), steps, ..Subject::default() }
}

fn check(config: Value, names: &[&str], score: f64) {
    let verdict = DEFINITION.compile(&object(config.clone())).unwrap().evaluate(&called(names)).unwrap();
    assert!((verdict.score - score).abs() < 1e-9, "{config} {names:?}: {verdict:?}");
}

#[test]
fn tool_choice_scores_worked_examples() {
    check(json!({"expected_tool": "weather"}), &["weather"], 1.0);
    check(json!({"expected_tool": "weather"}), &["weather", "weather"], 1.0);
    check(json!({"expected_tool": "weather"}), &["Weather"], 0.0);
    check(json!({"expected_tool": "weather"}), &[], 0.0);
    check(json!({"expected_tool": "weather"}), &["weather", "delete_account"], 0.5);
    check(json!({"expected_tool": "weather", "extra_tools": "allow"}), &["weather", "search"], 1.0);
    check(json!({"expected_tools": ["a", "b"]}), &["b", "a"], 1.0);
    check(json!({"expected_tools": ["a", "b"]}), &["a"], 0.5);
    check(json!({"expected_tools": ["a", "b"], "order": "same"}), &["b", "a"], 0.5);
    check(json!({"expected_tools": ["a", "b"], "order": "same"}), &["a", "a", "b"], 2.0 / 3.0);
    check(
        json!({"expected_tools": ["a", "b"], "order": "same", "extra_tools": "allow"}),
        &["a", "a", "b"],
        1.0,
    );
    check(json!({"expected_tools": ["a", "a"]}), &["a"], 0.5);
    check(json!({"expected_tools": ["a", "a"]}), &["a", "a"], 1.0);
    check(json!({"expected_tools": ["a"]}), &["a", "a"], 0.5);
    check(json!({"expected_tools": ["a"], "extra_tools": "allow"}), &["a", "a"], 1.0);
    check(json!({"expected_tools": ["a", "b", "a"], "order": "same"}), &["a", "a", "b"], 2.0 / 3.0);
    check(json!({"expected_tools": ["a", "a"], "order": "same"}), &["a"], 0.5);
    check(json!({"expected_tools": []}), &[], 1.0);
    check(json!({"expected_tools": []}), &["a"], 0.0);
    check(json!({"forbidden_tools": ["rm"]}), &["a"], 1.0);
    check(json!({"forbidden_tools": ["rm"]}), &["a", "rm"], 0.0);
    check(json!({"expected_tool": "a", "forbidden_tools": ["rm"]}), &["a", "rm"], 0.0);
}

#[test]
fn wrong_choice_passes_only_with_a_threshold() {
    let (names, config) = (["a", "b", "c", "d", "x"], json!({"expected_tools": ["a", "b", "c", "d"]}));
    let label =
        |config: Value| DEFINITION.compile(&object(config)).unwrap().evaluate(&called(&names)).unwrap().label;
    assert_eq!(label(config), "fail");
    assert_eq!(label(json!({"expected_tools": ["a", "b", "c", "d"], "threshold": 0.7})), "pass");
}

#[test]
fn trace_without_actions_is_not_evaluated() {
    let rule = DEFINITION.compile(&object(json!({"expected_tool": "a"}))).unwrap();
    let error = rule.evaluate(&Subject::default()).unwrap_err();
    assert!(error.to_string().contains("neither an output nor spans"), "{error}");
}

#[test]
fn invalid_config_problem_names_field() {
    for (config, field) in [
        (json!({}), "expected_tool"),
        (json!({"expected_tool": 5}), "expected_tool"),
        (json!({"expected_tool": "a", "expected_tools": ["a"]}), "expected_tool"),
        (json!({"expected_tools": "a"}), "expected_tools"),
        (json!({"expected_tools": [1]}), "expected_tools.0"),
        (json!({"expected_tool": "a", "order": "sam"}), "order"),
        (json!({"expected_tool": "a", "forbidden_tools": ["a"]}), "forbidden_tools"),
    ] {
        let Err(problems) = DEFINITION.compile(&object(config.clone())) else { panic!("{config}") };
        assert_eq!(problems[0].field, field, "{config}");
    }
}

#[test]
fn config_selects_code_or_judge() {
    use api::EvaluatorType::{Llm, Rule};
    for (config, kind) in [
        (json!({}), Llm),
        (json!({"order": "same"}), Llm),
        (json!({"expected_tool": null}), Llm),
        (json!({"expected_tools": []}), Rule),
        (json!({"forbidden_tools": ["rm"]}), Rule),
    ] {
        assert_eq!(DEFINITION.selected_type(&object(config.clone())), kind, "{config}");
    }
    assert!(DEFINITION.check(&object(json!({"expected_tool": "a", "threshold": 1}))).is_ok());
    assert!(DEFINITION.check(&object(json!({"expectedTool": "a"}))).is_err());
}

#[test]
fn unusual_tool_names_are_not_repeated() {
    let rule = DEFINITION.compile(&object(json!({"expected_tool": "a"}))).unwrap();
    let verdict = rule.evaluate(&called(&["mail me at jo@example.org"])).unwrap();
    assert!(!verdict.reasoning.contains("jo@"), "{}", verdict.reasoning);
}
