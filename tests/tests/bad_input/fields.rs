//! Every field of an item with values of every type, and fields that may be absent.

use serde_json::{Value, json};
use tests::on_both_databases;

use super::{Misshapen, NotAllowed, Stored, Verdict, judge};

/// Returns one value of every JSON type.
fn values() -> Vec<Value> {
    vec![
        json!(null),
        json!("text"),
        json!(""),
        json!(1),
        json!(1.5),
        json!(true),
        json!([]),
        json!(["x"]),
        json!({}),
        json!({"k": "v"}),
    ]
}

/// Returns whether a field accepts a value of this type.
type Takes = fn(&Value) -> bool;

const TEXT: Takes = |it| it.is_string() || it.is_null();
const WHOLE: Takes = |it| it.is_i64() || it.is_null();
const NUMBER: Takes = |it| it.is_number() || it.is_null();
const OBJECT: Takes = |it| it.is_object() || it.is_null();
const NO_VALUE_HERE: Takes = Value::is_null;

/// Fields of a trace; the tables below list those of a span and of an event.
const TRACE: &[(&str, Takes)] = &[
    ("id", TEXT),
    ("external_id", TEXT),
    ("session_id", TEXT),
    ("user_id", TEXT),
    ("name", TEXT),
    ("input", TEXT),
    ("output", TEXT),
    ("model", TEXT),
    ("error", TEXT),
    ("latency_ms", WHOLE),
    ("cost", NUMBER),
    ("tags", OBJECT),
    ("metadata", OBJECT),
    ("started_at", NO_VALUE_HERE),
    ("ended_at", NO_VALUE_HERE),
];
const SPAN: &[(&str, Takes)] = &[
    ("type", TEXT),
    ("id", TEXT),
    ("parent_span_id", TEXT),
    ("input", TEXT),
    ("output", TEXT),
    ("model", TEXT),
    ("error", TEXT),
    ("latency_ms", WHOLE),
    ("cost", NUMBER),
    ("prompt_tokens", WHOLE),
    ("completion_tokens", WHOLE),
    ("usage_details", OBJECT),
    ("metadata", OBJECT),
    ("start_time", NO_VALUE_HERE),
    ("end_time", NO_VALUE_HERE),
];
const EVENT: &[(&str, Takes)] = &[("id", TEXT), ("span_id", TEXT), ("level", TEXT), ("metadata", OBJECT)];

/// Combines each field with each value, in the item that `wrap` builds.
fn table(fields: &[(&'static str, Takes)], wrap: fn(&str, &Value) -> Value) -> Vec<(String, Verdict)> {
    let mut cases = Vec::new();
    for (field, takes) in fields {
        for value in values() {
            let verdict = if takes(&value) { Stored } else { Misshapen };
            // A trace's id is stored once, so each case uses another id.
            let value = if *field == "id" && value == "text" {
                json!(format!("text of {}", fields.len()))
            } else {
                value
            };
            cases.push((wrap(field, &value).to_string(), verdict));
        }
    }
    cases
}

on_both_databases! {
    async fn types_of_a_trace(app: TestApp) {
        judge(app, table(TRACE, |field, value| json!({field: value}))).await;
    }

    async fn types_of_a_span(app: TestApp) {
        judge(app, table(SPAN, |field, value| json!({"spans": [{"name": "s"}, {"name": "s", field: value}]}))).await;
    }

    async fn types_of_usage_details(app: TestApp) {
        let fields = [("cached_input_tokens", WHOLE), ("cache_write_tokens", WHOLE), ("reasoning_tokens", WHOLE)];
        judge(app, table(&fields, |field, value| json!({"spans": [{"name": "s", "usage_details": {field: value}}]}))).await;
        let negative = |(field, _): &(&str, Takes)| {
            (json!({"spans": [{"name": "s", "usage_details": {*field: -1}}]}).to_string(), NotAllowed)
        };
        judge(app, fields.iter().map(negative).collect()).await;
    }

    async fn types_of_an_event(app: TestApp) {
        judge(app, table(EVENT, |field, value| json!({"events": [{"message": "m", field: value}]}))).await;
    }

    async fn missing_required_field_is_rejected(app: TestApp) {
        let mut cases = vec![
            (json!({}), Stored), (json!({"spans": null, "events": null}), Stored), (json!({"spans": [], "events": []}), Stored),
            (json!({"spans": [{}]}), Misshapen), (json!({"spans": [{"id": "x"}]}), Misshapen), (json!({"events": [{}]}), Misshapen),
            (json!({"spans": [{"name": ""}]}), Stored), (json!({"events": [{"message": ""}]}), Stored),
            (json!({"spans": [{"name": "s"}, {}]}), Misshapen), (json!({"events": [{"level": "info"}]}), Misshapen),
            (json!({"unknown": {"deep": [1, null, {"x": []}]}, "spans": [{"name": "s", "unknown": 1}]}), Stored),
            (json!({"Name": 5, "spans ": 1}), Stored),
        ];
        for value in values() {
            let list = value.is_null() || value == json!([]);
            cases.push((json!({"spans": value}), if list { Stored } else { Misshapen }));
            cases.push((json!({"events": value}), if list { Stored } else { Misshapen }));
            cases.push((json!({"spans": [value]}), Misshapen));
            cases.push((json!({"events": [value]}), Misshapen));
            cases.push((json!({"spans": [{"name": value}]}), if value.is_string() { Stored } else { Misshapen }));
            cases.push((json!({"events": [{"message": value}]}), if value.is_string() { Stored } else { Misshapen }));
            cases.push((json!({"tags": {"key": value}}), if value.is_array() || value.is_object() { Misshapen } else { Stored }));
            cases.push((json!({"project_name": value}), match &value {
                Value::Null => Stored,
                Value::String(text) if !text.is_empty() => Stored,
                Value::String(_) => NotAllowed,
                _ => Misshapen,
            }));
            if !value.is_object() {
                cases.push((value, Misshapen));
            }
        }
        judge(app, cases.into_iter().map(|(body, verdict)| (body.to_string(), verdict)).collect()).await;
    }

    async fn unknown_span_type_is_stored_unchanged(app: TestApp) {
        let key = app.full_key();
        let item = json!({
            "spans": [{"id": "a", "name": "s", "type": "guardrail"}, {"name": "s", "type": "LLM"}, {"name": "s", "type": ""}],
            "events": [{"message": "m", "level": "catastrophe"}, {"message": "m"}],
        });
        let id = key.post("/v1/ingest", &item).await.ok()["id"].as_str().unwrap().to_owned();
        let shown = key.get(&format!("/v1/traces/{id}")).await.ok();
        let words = |list: &str, field: &str| {
            let mut words: Vec<_> = shown[list].as_array().unwrap().iter().map(|it| it[field].as_str().unwrap().to_owned()).collect();
            words.sort_unstable();
            words
        };
        assert_eq!(words("spans", "type"), ["LLM", "guardrail", "other"]);
        assert_eq!(words("events", "level"), ["catastrophe", "info"]);
    }
}
