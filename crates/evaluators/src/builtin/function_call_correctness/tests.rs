//! Tests of calls compared with the expected calls and with the schemas of their tools.

use serde_json::json;

use super::*;
use crate::subject::Step;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other}"),
    }
}

fn weather() -> Value {
    json!({"name": "weather", "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
        "required": ["city"], "additionalProperties": false,
    }})
}

/// Returns a trace whose model made these calls with tools offered.
fn called(calls: &[(&str, Value)]) -> Subject {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(name, arguments)| json!({"type": "tool_call", "name": name, "arguments": arguments}))
        .collect();
    let output =
        if calls.is_empty() { json!("Done.") } else { json!([{"role": "assistant", "parts": calls}]) };
    let step = Step {
        kind: api::SpanType::Llm,
        output: Some(output.to_string()),
        metadata: object(json!({"tools": [weather(), {"name": "bare"}]})),
        ..Step::default()
    };
    Subject { output: Some("Done.".to_owned()), steps: vec![step], ..Subject::default() }
}

fn check(config: Value, calls: &[(&str, Value)], score: f64, reasoning: &str) {
    let verdict = DEFINITION.compile(&object(config.clone())).unwrap().evaluate(&called(calls)).unwrap();
    assert!((verdict.score - score).abs() < 1e-9, "{config} {calls:?}: {verdict:?}");
    assert!(verdict.reasoning.contains(reasoning), "{config} {calls:?}: {verdict:?}");
}

#[test]
fn validation_scores_its_worked_examples() {
    let config = || json!({"validate": true});
    check(config(), &[("weather", json!({"city": "Bern"}))], 1.0, "valid");
    check(config(), &[("weather", json!({"city": "Bern", "days": 2.0}))], 1.0, "valid");
    check(config(), &[("weather", json!({"days": 2}))], 0.0, "weather: it");
    check(config(), &[("weather", json!({"city": "Bern", "days": "2"}))], 0.0, "/days");
    check(config(), &[("weather", json!({"town": "Bern"}))], 0.0, "weather: ");
    check(config(), &[("weather", json!("{broken"))], 0.0, "not a JSON object");
    check(config(), &[("wether", json!({"city": "Bern"}))], 0.0, "wether was not offered");
    let two = [("weather", json!({"city": "Bern"})), ("weather", json!({}))];
    check(config(), &two, 0.5, "weather: ");
    // The config names no expected calls.
    check(json!({}), &[("weather", json!({"city": "Bern"}))], 1.0, "valid");
}

#[test]
fn expected_calls_score_their_worked_examples() {
    let one = |arguments: Value| json!({"expected_calls": [{"name": "weather", "arguments": arguments}]});
    check(one(json!({"city": "Bern"})), &[("weather", json!({"city": "Bern", "days": 1}))], 1.0, "were made");
    check(one(json!({"city": "Bern"})), &[("weather", json!({"city": "bern"}))], 0.0, "but `city` differs");
    check(one(json!({"city": "Bern"})), &[], 0.0, "weather was not called");
    let bern = ("weather", json!({"city": "Bern"}));
    check(one(json!({"city": "Bern"})), &[bern.clone(), ("bare", json!({}))], 0.5, "a call of bare");
    let any = json!({"expected_calls": [{"name": "weather"}], "extra_calls": "allow"});
    check(any, &[("bare", json!({})), ("weather", json!({"city": "X"}))], 1.0, "were made");
    let both =
        |order: &str| json!({"expected_calls": [{"name": "bare"}, {"name": "weather"}], "order": order});
    check(both("any"), &[bern.clone(), ("bare", json!({}))], 1.0, "were made");
    check(both("same"), &[bern.clone(), ("bare", json!({}))], 0.5, "out of order");
    check(json!({"expected_calls": []}), &[], 1.0, "none was");
    check(json!({"expected_calls": []}), &[bern], 0.0, "not expected");
    let subset = json!({"expected_calls": [{"name": "weather", "arguments": {"city": "Bern"}}], "arguments": "subset"});
    check(subset, &[("weather", json!({"city": "Bern", "days": 3}))], 1.0, "were made");
    let valid = json!({"expected_calls": [{"name": "weather"}], "validate": true});
    check(valid, &[("weather", json!({"city": 3}))], 0.0, "/city");
}

#[test]
fn wrong_argument_passes_only_with_a_threshold() {
    let expected: Vec<Value> = ["A", "B", "C", "D", "E"]
        .iter()
        .map(|it| json!({"name": "weather", "arguments": {"city": it}}))
        .collect();
    let sent = ["A", "B", "C", "D", "Z"].map(|it| ("weather", json!({"city": it})));
    let judged =
        |config: Value| DEFINITION.compile(&object(config)).unwrap().evaluate(&called(&sent)).unwrap();
    let verdict = judged(json!({"expected_calls": expected}));
    assert_eq!((verdict.score, verdict.label.as_str()), (0.8, "fail"), "{verdict:?}");
    assert_eq!(judged(json!({"expected_calls": expected, "threshold": 0.7})).label, "pass");
    let valid = [("weather", json!({"city": "A"})), ("weather", json!({}))];
    let verdict =
        DEFINITION.compile(&object(json!({"validate": true}))).unwrap().evaluate(&called(&valid)).unwrap();
    assert_eq!(verdict.label, "fail");
}

#[test]
fn every_alternative_of_an_argument_is_accepted() {
    let config = json!({"expected_calls": [{"name": "weather", "arguments": {"city": "Bern", "days": 2},
        "alternatives": {"city": ["Berne", "Bern, CH"]}}]});
    let sent =
        [("Bern", 2, 1.0), ("Berne", 2, 1.0), ("Bern, CH", 2, 1.0), ("Basel", 2, 0.0), ("Berne", 3, 0.0)];
    for (city, days, score) in sent {
        check(config.clone(), &[("weather", json!({"city": city, "days": days}))], score, "");
    }
    for alternatives in [json!([]), json!({"city": "Berne"}), json!({"city": []}), json!({"town": ["Berne"]})]
    {
        let call = json!({"name": "weather", "arguments": {"city": "Bern"}, "alternatives": alternatives});
        let Err(problems) = DEFINITION.compile(&object(json!({"expected_calls": [call]}))) else {
            panic!("{alternatives}")
        };
        assert!(problems[0].field.starts_with("expected_calls.0.alternatives"), "{problems:?}");
    }
}

#[test]
fn missing_data_is_named_in_the_reason() {
    let lacking = |config: Value, subject: &Subject| {
        DEFINITION.compile(&object(config)).unwrap().evaluate(subject).unwrap_err().to_string()
    };
    assert!(lacking(json!({"validate": true}), &called(&[])).contains("no tool was called"));
    let mut blind = called(&[("weather", json!({}))]);
    blind.steps[0].metadata = Map::new();
    assert!(lacking(json!({"validate": true}), &blind).contains("which tools were offered"));
    blind.steps[0].metadata = object(json!({"tools": ["weather"]}));
    assert!(lacking(json!({"validate": true}), &blind).contains("no JSON Schema"));
    blind.steps[0].metadata = object(json!({"tools": [{"name": "weather", "parameters": {"type": "text"}}]}));
    assert!(lacking(json!({"validate": true}), &blind).contains("can't be used"));
    assert!(lacking(json!({"expected_calls": []}), &Subject::default()).contains("neither an output"));
    // The tools of the config replace the tools of the trace.
    blind.steps[0].metadata = Map::new();
    let rule = DEFINITION.compile(&object(json!({"validate": true, "tools": [weather()]}))).unwrap();
    assert_eq!(rule.evaluate(&blind).unwrap().score, 0.0);
}

#[test]
fn invalid_config_problem_names_field() {
    for (config, field) in [
        (json!({"expected_calls": {}}), "expected_calls"),
        (json!({"expected_calls": [{}]}), "expected_calls.0.name"),
        (json!({"expected_calls": [{"name": "f", "arguments": 1}]}), "expected_calls.0.arguments"),
        (json!({"validate": 1}), "validate"),
        (json!({"tools": [1]}), "tools.0"),
        (json!({"tools": [{"name": "f", "parameters": {"type": "text"}}]}), "tools"),
        (json!({"expected_calls": [], "arguments": "some"}), "arguments"),
    ] {
        let Err(problems) = DEFINITION.compile(&object(config.clone())) else { panic!("{config}") };
        assert_eq!(problems[0].field, field, "{config}");
    }
}

#[test]
fn schemas_of_one_trace_have_a_total_limit() {
    let names = ["a", "b", "c", "d", "e"];
    let calls = names.map(|it| (it, json!({})));
    let tools = |long: usize| {
        let schema = json!({"type": "object", "description": "x".repeat(long)});
        names.map(|it| json!({"name": it, "parameters": schema}))
    };
    let judged = |config: Value, long: usize| {
        let mut subject = called(&calls);
        subject.steps[0].metadata = object(json!({"tools": tools(long)}));
        DEFINITION.compile(&object(config)).unwrap().evaluate(&subject)
    };
    let why = judged(json!({"validate": true}), 250_000).unwrap_err().to_string();
    assert!(why.contains("more than 1 MiB in all"), "{why}");
    assert!(judged(json!({"validate": true}), 200_000).is_ok());
    // The tools of the config are compiled once, without the size limit for tools of a trace.
    assert!(judged(json!({"validate": true, "tools": tools(250_000)}), 250_000).is_ok());
}
