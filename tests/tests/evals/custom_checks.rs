//! Custom code evaluators: the results of every kind of check, and their combination.

use serde_json::{Value, json};
use tests::{TestApp, on_both_databases};

use super::{evaluate, trace};

/// Builds a model call with these tokens.
fn tokens(prompt: i64, completion: i64) -> Value {
    json!({"spans": [{"name": "chat", "type": "llm", "prompt_tokens": prompt, "completion_tokens": completion}]})
}

/// Builds calls of the tool `search`.
fn calls(times: usize) -> Value {
    let spans: Vec<Value> =
        (0..times).map(|_| json!({"name": "search", "type": "tool", "input": "{}"})).collect();
    json!({"output": "Found.", "spans": spans})
}

fn output_item(text: &str) -> Value {
    json!({"output": text})
}

/// Creates an evaluator with these checks.
async fn create_evaluator(app: &TestApp, name: &str, checks: &Value, combine: &str) {
    let body = json!({"name": name, "evaluator_type": "rule", "checks": checks, "combine": combine});
    let reply = app.full_key().post("/v1/evaluators", &body).await;
    assert_eq!(reply.status, 201, "{body}: {}", reply.text());
}

on_both_databases! {
    async fn every_kind_of_check_passes_and_fails(app: TestApp) {
        let key = app.full_key();
        let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}});
        let fenced = "Here:\n```json\n{\"a\": 1}\n```";
        for (i, (check, good, bad)) in [
            (json!({"kind": "regex", "pattern": "ref-[0-9]+"}), output_item("See ref-17."), output_item("See ref-x.")),
            (json!({"kind": "regex", "pattern": "ref-[0-9]+", "full_match": true, "case_insensitive": true}), output_item("REF-17"), output_item("See ref-17.")),
            (json!({"kind": "regex", "pattern": "(?i)guarantee", "negate": true}), output_item("It may work."), output_item("I GUARANTEE it.")),
            (json!({"kind": "contains", "text": "Refund"}), output_item("A Refund comes."), output_item("A refund comes.")),
            (json!({"kind": "contains", "text": "Refund", "case_insensitive": true}), output_item("A refund comes."), output_item("Nothing comes.")),
            (json!({"kind": "contains", "text": "help", "target": "input"}), json!({"input": "help me", "output": "No."}), json!({"input": "Hi", "output": "I help."})),
            (json!({"kind": "json_schema", "schema": schema}), output_item("{\"a\": 1}"), output_item("{\"a\": \"1\"}")),
            (json!({"kind": "json_schema", "schema": schema, "extract": true}), output_item(fenced), output_item("Here: 1")),
            (json!({"kind": "json_valid"}), output_item("[1]"), output_item("[1,]")),
            (json!({"kind": "json_valid", "extract": true}), output_item(fenced), output_item("No JSON.")),
            (json!({"kind": "length", "min_words": 2, "max_words": 3}), output_item("one two three"), output_item("one two three four")),
            (json!({"kind": "length", "min_chars": 3}), output_item("äöü"), output_item("äö")),
            (json!({"kind": "latency_ms", "min": 10, "max": 1000}), json!({"latency_ms": 1000}), json!({"latency_ms": 9})),
            (json!({"kind": "cost_usd", "max": 0.5}), json!({"cost": 0.5}), json!({"cost": 0.51})),
            (json!({"kind": "token_count", "max": 15}), tokens(10, 5), tokens(10, 6)),
            (json!({"kind": "token_count", "of": "prompt", "min": 10}), tokens(10, 0), tokens(9, 100)),
            (json!({"kind": "token_count", "of": "completion", "max": 5}), tokens(100, 5), tokens(0, 6)),
            (json!({"kind": "tool_called", "name": "search"}), calls(1), calls(0)),
            (json!({"kind": "tool_called", "name": "search", "min": 1, "max": 2}), calls(2), calls(3)),
            (json!({"kind": "tool_called", "name": "search", "max": 0}), calls(0), calls(1)),
        ].into_iter().enumerate() {
            let name = format!("check_{i}");
            create_evaluator(app, &name, &json!([check]), "all").await;
            for (item, score, label) in [(good, 1.0, "pass"), (bad, 0.0, "fail")] {
                let id = trace(&key, item.clone()).await;
                let done = evaluate(app, &id, &name, json!({})).await;
                let found = (&done["status"], &done["score"], &done["label"], &done["evaluator_type"]);
                assert_eq!(found, (&json!("complete"), &json!(score), &json!(label), &json!("rule")), "{check} {item}: {done}");
            }
            // A check without the data that it needs fails the evaluation. That there are no tool calls is
            // known, however.
            let nothing = trace(&key, json!({"name": "empty"})).await;
            let done = evaluate(app, &nothing, &name, json!({})).await;
            let status = if check["kind"] == "tool_called" { "complete" } else { "failed" };
            assert_eq!((&done["status"], done["score"].is_null()), (&json!(status), status == "failed"), "{check}: {done}");
        }
    }

    /// `all` scores the share of passed checks; every check must pass unless a threshold is set.
    async fn several_checks_are_combined_into_one_verdict(app: TestApp) {
        let key = app.full_key();
        let has = |text: &str| json!({"kind": "contains", "text": text});
        let slow = json!({"kind": "latency_ms", "max": 10});
        create_evaluator(app, "all_of", &json!([has("a"), has("b"), has("c"), has("d")]), "all").await;
        create_evaluator(app, "any_of", &json!([has("a"), has("b"), slow]), "any").await;
        for (name, text, config, score, label) in [
            ("all_of", "a b c d", json!({}), 1.0, "pass"),
            ("all_of", "a b c", json!({}), 0.75, "fail"),
            ("all_of", "a b c", json!({"threshold": 0.75}), 0.75, "pass"),
            ("all_of", "a b c", json!({"threshold": 0.8}), 0.75, "warn"),
            ("all_of", "a", json!({"threshold": 0.5}), 0.25, "fail"),
            ("all_of", "x", json!({}), 0.0, "fail"),
            ("any_of", "b", json!({}), 1.0, "pass"),
        ] {
            let id = trace(&key, json!({"output": text})).await;
            let done = evaluate(app, &id, name, config.clone()).await;
            let found = (&done["status"], &done["score"], &done["label"]);
            assert_eq!(found, (&json!("complete"), &json!(score), &json!(label)), "{name} {text} {config}: {done}");
        }
        let none = trace(&key, json!({"output": "x", "latency_ms": 11})).await;
        assert_eq!(evaluate(app, &none, "any_of", json!({})).await["score"], 0.0);
        // The latency is unknown. If it were known, the check might pass, so there is no verdict.
        let unknown = trace(&key, json!({"output": "x"})).await;
        let done = evaluate(app, &unknown, "any_of", json!({})).await;
        assert_eq!((&done["status"], &done["score"]), (&json!("failed"), &Value::Null), "{done}");
    }
}
