//! Measures how many evaluations per second of processor time a code evaluator makes, on an output of about 1
//! KB. Every code evaluator has a row in [`rows`] and a minimum rate; the program fails below it. See
//! docs/benchmarks.md.
//!
//! This is a benchmark of the crate `evaluators`, so that it does not build the server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod processor_time;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use api::evaluator::Combine;
use evaluators::{CompiledEvaluator, Subject, builtin, custom, subject::Step};
use processor_time::spent;
use serde_json::{Map, Value, json};

/// Measured time of each code evaluator, after a warm-up of a tenth of that time.
const MEASURED_TIME: Duration = Duration::from_secs(1);
/// Minimum number of evaluations per second.
const MIN_RATE: f64 = 20_000.0;
/// Minimum number of evaluations per second of JSON Schema and personal data, which do the most work.
const MIN_RATE_OF_COSTLY: f64 = 5_000.0;

/// A code evaluator with its config and its subject.
struct Row {
    name: String,
    evaluator: CompiledEvaluator,
    subject: Subject,
    bar: f64,
}

fn main() -> ExitCode {
    let mut missed = false;
    println!("{:<44} {:>12} {:>10} {:>8} {:>6}", "evaluator", "a second", "µs each", "bytes", "score");
    for row in rows() {
        let judge = || {
            row.evaluator.evaluate(&row.subject).expect("the subject has all that the evaluator needs").score
        };
        let score = judge();
        let warm = Instant::now();
        while warm.elapsed() < MEASURED_TIME / 10 {
            std::hint::black_box(judge());
        }
        let (mut count, began, spent) = (0_u32, Instant::now(), spent());
        while began.elapsed() < MEASURED_TIME {
            // One reading of the clock serves many evaluations.
            for _ in 0..20 {
                std::hint::black_box(judge());
            }
            count += 20;
        }
        let each = (processor_time::spent() - spent).as_secs_f64() / f64::from(count);
        let below = 1.0 / each < row.bar;
        missed |= below;
        println!(
            "{:<44} {:>12.0} {:>10.2} {:>8} {:>6.2}{}",
            row.name,
            1.0 / each,
            each * 1e6,
            row.subject.output.as_deref().map_or(0, str::len),
            score,
            if below { format!("  below {}", row.bar) } else { String::new() }
        );
    }
    if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Returns the rows of all code evaluators. A code evaluator whose time depends on its findings has several.
fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |name: &str, note: &str, config: Value, output: &str, bar: f64| {
        let definition = builtin::find(name).expect("a built-in");
        let config = config.as_object().unwrap();
        let evaluator = definition.compile(config).unwrap();
        rows.push(Row { name: format!("{name} {note}"), evaluator, subject: subject(output), bar });
    };
    add("latency_threshold", "", json!({"max_latency_ms": 1000}), &prose(), MIN_RATE);
    add("cost_threshold", "", json!({"max_cost_usd": 0.01}), &prose(), MIN_RATE);
    add(
        "json_schema_conformance",
        "(conforming)",
        json!({"schema": schema()}),
        &order(true),
        MIN_RATE_OF_COSTLY,
    );
    add(
        "json_schema_conformance",
        "(failing)",
        json!({"schema": schema()}),
        &order(false),
        MIN_RATE_OF_COSTLY,
    );
    add("output_format_compliance", "json", json!({"format": "json"}), &order(true), MIN_RATE);
    add("output_format_compliance", "yaml", json!({"format": "yaml"}), &yaml(), MIN_RATE);
    add("output_format_compliance", "xml", json!({"format": "xml"}), &xml(), MIN_RATE);
    add("output_format_compliance", "csv", json!({"format": "csv"}), &csv(), MIN_RATE);
    add(
        "output_format_compliance",
        "markdown_table",
        json!({"format": "markdown_table"}),
        &table(),
        MIN_RATE,
    );
    let pattern = json!({"format": "regex", "pattern": r"(?i)\b(refund|return)s?\b.{0,80}\b\d+ days\b"});
    add("output_format_compliance", "regex", pattern, &prose(), MIN_RATE);
    add(
        "output_format_compliance",
        "length",
        json!({"format": "length", "max_words": 500}),
        &prose(),
        MIN_RATE,
    );
    add("pii_leakage", "", json!({}), &prose(), MIN_RATE_OF_COSTLY);
    add("language_conformance", "", json!({"language": "en"}), &prose(), MIN_RATE);
    add("sentiment_match", "", json!({"expected": "neutral"}), &prose(), MIN_RATE);
    add("tool_choice_correctness", "", json!({"expected_tool": "search"}), &prose(), MIN_RATE);
    let call = json!({"name": "search", "arguments": {"query": "return policy"}});
    add("function_call_correctness", "", json!({"expected_calls": [call]}), &prose(), MIN_RATE);
    for (note, checks) in custom_rules() {
        let evaluator = custom::rule::compile(checks.as_array().unwrap(), Combine::All, &Map::new()).unwrap();
        let output = if note.contains("json") { order(true) } else { prose() };
        rows.push(Row {
            name: format!("custom {note}"),
            evaluator,
            subject: subject(&output),
            bar: MIN_RATE,
        });
    }
    rows
}

fn custom_rules() -> [(&'static str, Value); 3] {
    [
        (
            "text (4 checks)",
            json!([
                {"kind": "regex", "pattern": "[Rr]efund"}, {"kind": "contains", "text": "sorry", "negate": true},
                {"kind": "length", "max_chars": 5000}, {"kind": "json_valid", "negate": true}
            ]),
        ),
        (
            "numbers (3 checks)",
            json!([
                {"kind": "latency_ms", "max": 5000}, {"kind": "cost_usd", "max": 1}, {"kind": "token_count", "max": 9000}
            ]),
        ),
        (
            "json and a tool (2 checks)",
            json!([{"kind": "json_valid"}, {"kind": "tool_called", "name": "search"}]),
        ),
    ]
}

fn subject(output: &str) -> Subject {
    let search = Step {
        kind: api::SpanType::Tool,
        name: "search".into(),
        input: Some(r#"{"query": "return policy"}"#.into()),
        output: Some("Returns within 30 days.".into()),
        ..Step::default()
    };
    Subject {
        input: Some("How do I return my order?".into()),
        output: Some(output.into()),
        latency_ms: Some(840),
        cost: Some(0.0031),
        prompt_tokens: Some(640),
        completion_tokens: Some(210),
        steps: vec![search],
        ..Subject::default()
    }
}

fn prose() -> String {
    "Thank you for getting in touch about your order. You can return anything that you bought within 30 days of \
     delivery, as long as it is unused and in its box; refunds go back to the card that was charged and take 5 to \
     10 days. To begin, open the list of your orders, choose the one in question, and press Return. We then send a \
     label to the address that you gave. If a part is broken, add a photograph, so that we can tell the workshop \
     what to look for. "
        .repeat(3)
        .chars()
        .take(1024)
        .collect()
}

fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "required": ["id", "customer", "items", "total"],
        "properties": {
            "id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4,10}$"},
            "customer": {"$ref": "#/$defs/person"},
            "items": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/item"}},
            "total": {"type": "number", "minimum": 0},
            "currency": {"enum": ["EUR", "USD", "GBP"]},
            "note": {"type": ["string", "null"], "maxLength": 500}
        },
        "additionalProperties": false,
        "$defs": {
            "person": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "vip": {"type": "boolean"}}},
            "item": {
                "type": "object", "required": ["sku", "count", "price"], "additionalProperties": false,
                "properties": {
                    "sku": {"type": "string", "minLength": 3}, "count": {"type": "integer", "minimum": 1},
                    "price": {"type": "number", "exclusiveMinimum": 0}, "kind": {"anyOf": [{"const": "goods"}, {"const": "service"}]}
                }
            }
        }
    })
}

fn order(conforming: bool) -> String {
    let item = |i: u32| {
        let count = if conforming || i != 7 { json!(i + 1) } else { json!("many") };
        json!({"sku": format!("sku-{i:05}"), "count": count, "price": 9.5 + f64::from(i), "kind": "goods"})
    };
    let items: Vec<Value> = (0..14).map(item).collect();
    json!({
        "id": "DE-204815", "customer": {"name": "Ada Lovelace", "vip": true}, "items": items, "total": 311.5,
        "currency": "EUR", "note": null
    })
    .to_string()
}

fn yaml() -> String {
    let item =
        |i: u32| format!("  - sku: sku-{i:05}\n    count: {}\n    tags: [goods, \"fragile\"]\n", i + 1);
    format!(
        "id: DE-204815\ncustomer:\n  name: Ada Lovelace\nitems:\n{}",
        (0..18).map(item).collect::<String>()
    )
}

fn xml() -> String {
    let item = |i: u32| format!("  <item sku=\"sku-{i:05}\" count='{}'>Tea &amp; cake</item>\n", i + 1);
    format!("<order xmlns=\"urn:example:order\">\n{}</order>", (0..20).map(item).collect::<String>())
}

fn csv() -> String {
    let row = |i: u32| format!("{i},\"Tea, \"\"green\"\"\",{}.50,2026-01-02\n", i + 1);
    format!("id,name,price,day\n{}", (0..32).map(row).collect::<String>())
}

fn table() -> String {
    let row = |i: u32| format!("| {i} | Tea | {}.50 | 2026-01-02 |\n", i + 1);
    format!("| id | name | price | day |\n|---|:--|--:|---|\n{}", (0..32).map(row).collect::<String>())
}
