//! Worked examples, at least one of each kind.

use serde_json::json;

use super::*;
use crate::subject::Step;

fn rule(checks: Value, combine: Combine) -> CompiledEvaluator {
    compile(checks.as_array().unwrap(), combine, &Map::new()).unwrap()
}

fn with_output(output: &str) -> Subject {
    Subject { output: Some(output.into()), ..Subject::default() }
}

/// Asserts for each check whether it holds.
fn check(subject: &Subject, cases: &[(Value, bool)]) {
    for (check, expected) in cases {
        let verdict = rule(json!([check]), Combine::All).evaluate(subject).unwrap();
        assert_eq!(verdict.score, if *expected { 1.0 } else { 0.0 }, "{check}: {verdict:?}");
    }
}

#[test]
fn text_checks_accept_and_reject_texts() {
    let subject = Subject { input: Some("Say hello".into()), ..with_output("Hello, World") };
    check(
        &subject,
        &[
            (json!({"kind": "regex", "pattern": "^Hello"}), true),
            (json!({"kind": "regex", "pattern": "^hello"}), false),
            (json!({"kind": "regex", "pattern": "^hello", "case_insensitive": true}), true),
            (json!({"kind": "regex", "pattern": "Hello", "full_match": true}), false),
            (json!({"kind": "regex", "pattern": "Hello", "negate": true}), false),
            (json!({"kind": "regex", "pattern": "hello$", "target": "input"}), true),
            (json!({"kind": "contains", "text": "World"}), true),
            (json!({"kind": "contains", "text": "WORLD"}), false),
            (json!({"kind": "contains", "text": "WORLD", "case_insensitive": true}), true),
            (json!({"kind": "contains", "text": "sorry", "negate": true}), true),
            (json!({"kind": "length", "max_chars": 12, "min_words": 2}), true),
            (json!({"kind": "length", "max_chars": 11}), false),
            (json!({"kind": "length", "max_words": 1}), false),
            (json!({"kind": "json_valid"}), false),
        ],
    );
}

#[test]
fn json_checks_accept_and_reject_texts() {
    let schema = json!({"required": ["a"]});
    let case = |check: Value, output: &str, expected| self::check(&with_output(output), &[(check, expected)]);
    case(json!({"kind": "json_valid"}), " {\"a\": 1} ", true);
    case(json!({"kind": "json_valid"}), "```json\n1\n```", false);
    case(json!({"kind": "json_valid", "extract": true}), "```json\n1\n```", true);
    case(json!({"kind": "json_schema", "schema": schema}), "{\"a\": 1}", true);
    case(json!({"kind": "json_schema", "schema": schema}), "{\"b\": 1}", false);
    case(json!({"kind": "json_schema", "schema": schema}), "{", false);
    case(json!({"kind": "json_schema", "schema": schema, "extract": true}), "```\n{\"a\": 1}\n```", true);
    case(json!({"kind": "json_schema", "schema": schema, "negate": true}), "{\"b\": 1}", true);
}

#[test]
fn number_checks_compare_with_bounds() {
    let subject = Subject {
        latency_ms: Some(900),
        cost: Some(0.002),
        prompt_tokens: Some(100),
        completion_tokens: Some(20),
        ..Subject::default()
    };
    check(
        &subject,
        &[
            (json!({"kind": "latency_ms", "max": 900}), true),
            (json!({"kind": "latency_ms", "max": 899}), false),
            (json!({"kind": "latency_ms", "min": 901}), false),
            (json!({"kind": "cost_usd", "max": 0.002}), true),
            (json!({"kind": "cost_usd", "max": 0.001}), false),
            (json!({"kind": "token_count", "max": 120}), true),
            (json!({"kind": "token_count", "max": 119}), false),
            (json!({"kind": "token_count", "of": "completion", "max": 20}), true),
            (json!({"kind": "token_count", "of": "prompt", "min": 101}), false),
        ],
    );
}

#[test]
fn tool_checks_count_the_calls() {
    let called = |id: u128| Step {
        id: uuid::Uuid::from_u128(id),
        kind: api::SpanType::Tool,
        name: "search".into(),
        ..Step::default()
    };
    let subject = Subject { steps: vec![called(1), called(2)], ..Subject::default() };
    check(
        &subject,
        &[
            (json!({"kind": "tool_called", "name": "search"}), true),
            (json!({"kind": "tool_called", "name": "refund"}), false),
            (json!({"kind": "tool_called", "name": "refund", "negate": true}), true),
            (json!({"kind": "tool_called", "name": "search", "max": 1}), false),
            (json!({"kind": "tool_called", "name": "search", "min": 2}), true),
        ],
    );
}

#[test]
fn share_of_passed_checks_must_be_one_without_a_threshold() {
    let checks = ["a", "b", "c", "x"].map(|it| json!({"kind": "contains", "text": it}));
    let evaluate_with = |config: Value| {
        compile(&checks, Combine::All, config.as_object().unwrap()).unwrap().evaluate(&with_output("abc"))
    };
    let verdict = evaluate_with(json!({})).unwrap();
    assert_eq!((verdict.score, verdict.label.as_str()), (0.75, "fail"));
    assert_eq!(
        verdict.reasoning,
        "3 of 4 checks hold; check 4 (contains): the output does not contain \"x\""
    );
    assert_eq!(evaluate_with(json!({"threshold": 0.7})).unwrap().label, "pass");
    let all =
        compile(&checks[..3], Combine::All, &Map::new()).unwrap().evaluate(&with_output("abc")).unwrap();
    assert_eq!((all.score, all.label.as_str(), all.reasoning.as_str()), (1.0, "pass", "all 3 checks hold"));
}

#[test]
fn combination_any_needs_one_check_and_guesses_nothing() {
    let checks = json!([{"kind": "cost_usd", "max": 1}, {"kind": "contains", "text": "a"}]);
    assert_eq!(rule(checks.clone(), Combine::Any).evaluate(&with_output("abc")).unwrap().score, 1.0);
    let why = rule(checks.clone(), Combine::Any).evaluate(&with_output("xyz")).unwrap_err();
    assert!(why.reason.starts_with("check 1 (cost_usd) is not possible: the cost is not known"), "{why}");
    assert!(rule(checks, Combine::All).evaluate(&with_output("abc")).is_err());
    let none = json!([{"kind": "contains", "text": "a"}, {"kind": "contains", "text": "b"}]);
    assert_eq!(rule(none, Combine::Any).evaluate(&with_output("xyz")).unwrap().score, 0.0);
}

#[test]
fn invalid_check_problem_names_field() {
    let check = |checks: Value, field: &str, part: &str| {
        let problems = compile(checks.as_array().unwrap(), Combine::All, &Map::new()).err().unwrap();
        assert_eq!(problems[0].field, field, "{problems:?}");
        assert!(problems[0].message.contains(part), "{problems:?}");
    };
    check(json!([]), "checks", "1 to 50");
    check((0..51).map(|_| json!({"kind": "json_valid"})).collect(), "checks", "1 to 50");
    check(json!(["regex"]), "checks.0", "an object");
    check(json!([{"kind": "json_valid"}, {"kind": "regexp"}]), "checks.1.kind", "must be one of regex,");
    check(json!([{"kind": "regex"}]), "checks.0.pattern", "is required");
    check(json!([{"kind": "regex", "pattern": "("}]), "checks.0.pattern", "linear time");
    check(json!([{"kind": "regex", "pattern": "a", "case": true}]), "checks.0.case", "is not an option");
    check(json!([{"kind": "contains", "text": ""}]), "checks.0.text", "shorter");
    check(json!([{"kind": "length"}]), "checks.0", "at least one of");
    check(json!([{"kind": "length", "min_chars": 2, "max_chars": 1}]), "checks.0.min_chars", "above");
    check(json!([{"kind": "latency_ms"}]), "checks.0", "min, max or both");
    check(json!([{"kind": "latency_ms", "max": -1}]), "checks.0.max", "below 0");
    check(
        json!([{"kind": "latency_ms", "max": 1, "target": "input"}]),
        "checks.0.target",
        "is not an option",
    );
    check(json!([{"kind": "json_schema", "schema": {"type": 1}}]), "checks.0.schema.type", "alternatives");
    check(json!([{"kind": "tool_called"}]), "checks.0.name", "is required");
    check(json!([{"kind": "contains", "text": "a", "negate": "yes"}]), "checks.0.negate", "boolean");
}

#[test]
fn evaluation_of_hostile_texts_terminates() {
    let checks = json!([
        {"kind": "regex", "pattern": "(a+)+$"}, {"kind": "regex", "pattern": "(x|xx)*y", "full_match": true},
        {"kind": "contains", "text": "\u{0}"}, {"kind": "length", "max_words": 3}, {"kind": "json_valid"}
    ]);
    let rule = rule(checks, Combine::All);
    for output in ["a".repeat(5_000_000) + "!", "x".repeat(10_000_000), "[".repeat(10_000_000)] {
        rule.evaluate(&with_output(&output)).unwrap();
    }
}
