//! Every field of an item with values of every type, and fields that may be absent.

use serde_json::{Value, json};
use tests::on_both_databases;

use super::{NotAllowed, Stored, Verdict, WrongShape, check_all};

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

const TEXT_FIELD: Takes = |it| it.is_string() || it.is_null();
const INTEGER_FIELD: Takes = |it| it.is_i64() || it.is_null();
const NUMBER_FIELD: Takes = |it| it.is_number() || it.is_null();
const OBJECT_FIELD: Takes = |it| it.is_object() || it.is_null();
const NULL_FIELD: Takes = Value::is_null;

/// Fields of a trace; the tables below list those of a span and of an event.
const TRACE_FIELDS: &[(&str, Takes)] = &[
    ("id", TEXT_FIELD),
    ("external_id", TEXT_FIELD),
    ("session_id", TEXT_FIELD),
    ("user_id", TEXT_FIELD),
    ("name", TEXT_FIELD),
    ("input", TEXT_FIELD),
    ("output", TEXT_FIELD),
    ("model", TEXT_FIELD),
    ("error", TEXT_FIELD),
    ("latency_ms", INTEGER_FIELD),
    ("cost", NUMBER_FIELD),
    ("tags", OBJECT_FIELD),
    ("metadata", OBJECT_FIELD),
    ("started_at", NULL_FIELD),
    ("ended_at", NULL_FIELD),
];
const SPAN_FIELDS: &[(&str, Takes)] = &[
    ("type", TEXT_FIELD),
    ("id", TEXT_FIELD),
    ("parent_span_id", TEXT_FIELD),
    ("input", TEXT_FIELD),
    ("output", TEXT_FIELD),
    ("model", TEXT_FIELD),
    ("error", TEXT_FIELD),
    ("latency_ms", INTEGER_FIELD),
    ("cost", NUMBER_FIELD),
    ("prompt_tokens", INTEGER_FIELD),
    ("completion_tokens", INTEGER_FIELD),
    ("usage_details", OBJECT_FIELD),
    ("metadata", OBJECT_FIELD),
    ("start_time", NULL_FIELD),
    ("end_time", NULL_FIELD),
];
const EVENT_FIELDS: &[(&str, Takes)] =
    &[("id", TEXT_FIELD), ("span_id", TEXT_FIELD), ("level", TEXT_FIELD), ("metadata", OBJECT_FIELD)];

/// Combines each field with each value, in the item that `wrap` builds.
fn table(fields: &[(&'static str, Takes)], wrap: fn(&str, &Value) -> Value) -> Vec<(String, Verdict)> {
    let mut cases = Vec::new();
    for (field, takes) in fields {
        for value in values() {
            let verdict = if takes(&value) { Stored } else { WrongShape };
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
    async fn trace_fields_accept_only_their_types(app: TestApp) {
        check_all(app, table(TRACE_FIELDS, |field, value| json!({field: value}))).await;
    }

    async fn span_fields_accept_only_their_types(app: TestApp) {
        check_all(app, table(SPAN_FIELDS, |field, value| json!({"spans": [{"name": "s"}, {"name": "s", field: value}]}))).await;
    }

    async fn usage_details_accept_only_their_types(app: TestApp) {
        let fields = [("cached_input_tokens", INTEGER_FIELD), ("cache_write_tokens", INTEGER_FIELD), ("reasoning_tokens", INTEGER_FIELD)];
        check_all(app, table(&fields, |field, value| json!({"spans": [{"name": "s", "usage_details": {field: value}}]}))).await;
        let negative = |(field, _): &(&str, Takes)| {
            (json!({"spans": [{"name": "s", "usage_details": {*field: -1}}]}).to_string(), NotAllowed)
        };
        check_all(app, fields.iter().map(negative).collect()).await;
    }

    async fn event_fields_accept_only_their_types(app: TestApp) {
        check_all(app, table(EVENT_FIELDS, |field, value| json!({"events": [{"message": "m", field: value}]}))).await;
    }

    async fn missing_required_field_is_rejected(app: TestApp) {
        let mut cases = vec![
            (json!({}), Stored), (json!({"spans": null, "events": null}), Stored), (json!({"spans": [], "events": []}), Stored),
            (json!({"spans": [{}]}), WrongShape), (json!({"spans": [{"id": "x"}]}), WrongShape), (json!({"events": [{}]}), WrongShape),
            (json!({"spans": [{"name": ""}]}), Stored), (json!({"events": [{"message": ""}]}), Stored),
            (json!({"spans": [{"name": "s"}, {}]}), WrongShape), (json!({"events": [{"level": "info"}]}), WrongShape),
            (json!({"unknown": {"deep": [1, null, {"x": []}]}, "spans": [{"name": "s", "unknown": 1}]}), Stored),
            (json!({"Name": 5, "spans ": 1}), Stored),
        ];
        for value in values() {
            let list = value.is_null() || value == json!([]);
            cases.push((json!({"spans": value}), if list { Stored } else { WrongShape }));
            cases.push((json!({"events": value}), if list { Stored } else { WrongShape }));
            cases.push((json!({"spans": [value]}), WrongShape));
            cases.push((json!({"events": [value]}), WrongShape));
            cases.push((json!({"spans": [{"name": value}]}), if value.is_string() { Stored } else { WrongShape }));
            cases.push((json!({"events": [{"message": value}]}), if value.is_string() { Stored } else { WrongShape }));
            cases.push((json!({"tags": {"key": value}}), if value.is_array() || value.is_object() { WrongShape } else { Stored }));
            cases.push((json!({"project_name": value}), match &value {
                Value::Null => Stored,
                Value::String(text) if !text.is_empty() => Stored,
                Value::String(_) => NotAllowed,
                _ => WrongShape,
            }));
            if !value.is_object() {
                cases.push((value, WrongShape));
            }
        }
        check_all(app, cases.into_iter().map(|(body, verdict)| (body.to_string(), verdict)).collect()).await;
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
