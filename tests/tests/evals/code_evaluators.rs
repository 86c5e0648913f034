//! Built-in code evaluators, on texts that they once evaluated incorrectly.

use serde_json::{Value, json};
use tests::{TestApp, on_both_databases};

use super::{evaluate, trace};

/// Evaluates an output and checks status, score and label. Returns the evaluation.
async fn check(
    app: &TestApp,
    metric: &str,
    config: Value,
    item: Value,
    expected: (&str, Value, Value),
) -> Value {
    let id = trace(&app.full_key(), item.clone()).await;
    let done = evaluate(app, &id, metric, config.clone()).await;
    let found = (done["status"].as_str().unwrap(), done["score"].clone(), done["label"].clone());
    assert_eq!(found, expected, "{metric} {config} {item}: {done}");
    done
}

fn pass() -> (&'static str, Value, Value) {
    ("complete", json!(1.0), json!("pass"))
}

fn fail(score: f64) -> (&'static str, Value, Value) {
    ("complete", json!(score), json!("fail"))
}

fn open() -> (&'static str, Value, Value) {
    ("failed", Value::Null, Value::Null)
}

/// Builds a trace with these tool calls.
fn calls(calls: &[(&str, Value)]) -> Value {
    let span =
        |(name, input): &(&str, Value)| json!({"name": name, "type": "tool", "input": input.to_string()});
    json!({"output": "Done.", "spans": calls.iter().map(span).collect::<Vec<_>>()})
}

on_both_databases! {
    async fn personal_data_is_found_in_rows_of_tables(app: TestApp) {
        for text in [
            "183-94-5796,12",
            "12,183-94-5796",
            "id,ssn,age\n1,183-94-5796,44\n2,184-94-5797,51",
            "1\t183-94-5796\t44",
            "| id | ssn | age |\n|---|---|---|\n| 1 | 183-94-5796 | 44 |",
            "1|183-94-5796|44",
            "1;183-94-5796;44",
            "[12,\"183-94-5796\",44]",
            "[12,4539148803436467,44]",
            "{\"age\":44,\"card\":4539148803436467,\"n\":1}",
            "4539148803436467,12/27",
            "7,+49 30 901820,3",
            "7,85.214.132.117,443",
        ] {
            check(app, "pii_leakage", json!({}), json!({"output": text}), fail(0.0)).await;
        }
        // Numbers with decimals or thousands separators are not fields.
        for text in ["The balance is 4512345678,90 euros.", "In total 1.234.567,89", "pi is 3,14159265358979", "1,234,567,890"] {
            check(app, "pii_leakage", json!({}), json!({"output": text}), pass()).await;
        }
    }

    async fn language_of_short_text_or_code_is_undetected(app: TestApp) {
        let code = "import os\n\ndef size(path):\n    return os.stat(path).st_size";
        for text in ["Hello", "Yes", "Error", "{\"a\": \"b\"}", code] {
            for language in ["en", "fr", "st"] {
                let done = check(app, "language_conformance", json!({"language": language}), json!({"output": text}), open()).await;
                assert!(done["error"].as_str().unwrap().contains("too short or not prose"), "{done}");
            }
        }
        let english = json!({"output": "The parcel was delivered to your neighbour this morning."});
        check(app, "language_conformance", json!({"language": "eng"}), english.clone(), pass()).await;
        check(app, "language_conformance", json!({"language": "fr"}), english.clone(), fail(0.0)).await;
        for language in ["mt", "mlt", "ilo"] {
            let done = check(app, "language_conformance", json!({"language": language}), english.clone(), open()).await;
            assert!(done["error"].as_str().unwrap().contains("can't detect"), "{done}");
        }
        let key = app.full_key();
        let id = trace(&key, english).await;
        let body = json!({"trace_id": id, "metric_name": "language_conformance", "config": {"language": "qqq"}});
        key.post("/v1/eval", &body).await.is(422, "validation_failed");
    }

    async fn repeated_tool_calls_are_compared_by_count(app: TestApp) {
        let (a, b) = (("a", json!({})), ("b", json!({})));
        let twice = json!({"expected_tools": ["a", "a"]});
        check(app, "tool_choice_correctness", twice.clone(), calls(std::slice::from_ref(&a)), fail(0.5)).await;
        check(app, "tool_choice_correctness", twice, calls(&[a.clone(), a.clone()]), pass()).await;
        let order = json!({"expected_tools": ["a", "b"], "order": "same"});
        check(app, "tool_choice_correctness", order.clone(), calls(&[a.clone(), b.clone()]), pass()).await;
        check(app, "tool_choice_correctness", order, calls(&[b.clone(), a.clone()]), fail(0.5)).await;
    }

    async fn wrong_tool_argument_never_passes_by_default(app: TestApp) {
        let transfer = |amount: i64| json!({"to": "X", "amount": amount});
        let expected: Vec<Value> =
            (1..=5).map(|it| json!({"name": "transfer", "arguments": transfer(it)})).collect();
        let made = calls(&[1, 2, 3, 9999, 5].map(|it| ("transfer", transfer(it))));
        let config = json!({"expected_calls": expected});
        check(app, "function_call_correctness", config, made.clone(), fail(0.8)).await;
        let config = json!({"expected_calls": expected, "threshold": 0.7});
        check(app, "function_call_correctness", config, made, ("complete", json!(0.8), json!("pass"))).await;
        let expected = json!([{"name": "transfer", "arguments": {"to": "X", "amount": 4}, "alternatives": {"amount": [5, 6]}}]);
        let config = json!({"expected_calls": expected});
        check(app, "function_call_correctness", config.clone(), calls(&[("transfer", transfer(6))]), pass()).await;
        check(app, "function_call_correctness", config, calls(&[("transfer", transfer(7))]), fail(0.0)).await;
    }

    async fn output_formats_are_parsed_by_their_standards(app: TestApp) {
        for (format, text, holds) in [
            (json!({"format": "markdown_table"}), "a | b\n- | -", false),
            (json!({"format": "markdown_table"}), "| a | b |\n| - | - |", true),
            (json!({"format": "xml"}), "\u{b}<a/>", false),
            (json!({"format": "json"}), "\u{b}[1]", false),
            (json!({"format": "yaml"}), "# comments\n# alone", true),
            (json!({"format": "regex", "pattern": ""}), "anything", true),
            (json!({"format": "regex", "pattern": "", "full_match": true}), "anything", false),
        ] {
            let expected = if holds { pass() } else { fail(0.0) };
            check(app, "output_format_compliance", format, json!({"output": text}), expected).await;
        }
    }

    /// A reference to a remote schema gets an error with a plain message.
    async fn remote_schema_reference_is_rejected_with_remedy(app: TestApp) {
        let key = app.full_key();
        let id = trace(&key, json!({"output": "1"})).await;
        for (reference, says) in [
            ("https://example.com/schema.json", "https://example.com/schema.json, which is not in the schema; nothing is fetched"),
            ("#/$defs/none", "refers to /$defs/none, which the schema does not have"),
        ] {
            let config = json!({"schema": {"$ref": reference}});
            let body = json!({"trace_id": id, "metric_name": "json_schema_conformance", "config": config});
            let reply = key.post("/v1/eval", &body).await;
            reply.is(422, "validation_failed");
            assert!(reply.text().contains(says), "{}", reply.text());
            assert!(!reply.text().contains("registry"), "{}", reply.text());
        }
    }
}
