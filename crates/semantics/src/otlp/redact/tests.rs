//! Tests of the redaction of OTLP messages.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::{
    super::{DecodedExport, MeasuredExport, OtlpEncoding, OtlpExport},
    *,
};

/// Masks the word `secret`.
struct WordRedactor;

impl Redact for WordRedactor {
    fn text(&self, text: &mut String, counts: &mut RedactionCounts) {
        let found = text.matches("secret").count() as u64 + u64::from(text.contains("4111111111111111"));
        if text == "4711" || text == "0.4711" {
            "[REDACTED:word]".clone_into(text);
            *counts.entry("word".to_owned()).or_default() += 1;
        } else if found > 0 {
            *text = text.replace("secret", "[REDACTED:word]").replace("4111111111111111", "[REDACTED:word]");
            *counts.entry("word".to_owned()).or_default() += found;
        }
    }

    fn labelled_text(&self, _label: &str, text: &mut String, counts: &mut RedactionCounts) {
        self.text(text, counts);
    }

    fn searches_small_numbers(&self, label: &str) -> bool {
        label == "small"
    }

    fn json_strings(&self, text: &mut String, counts: &mut RedactionCounts) {
        self.text(text, counts);
    }
}

fn redacted(body: &Value) -> super::super::Decoded {
    let body = body.to_string().into_bytes();
    let export = MeasuredExport::<_, DecodedExport>::measure(OtlpEncoding::Json, body).unwrap();
    let mut decoded = export.decode().unwrap();
    decoded.redact(|project| (project != Some("open")).then_some(&WordRedactor as &dyn Redact));
    decoded.convert()
}

fn span(attributes: Value) -> Value {
    json!({"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "secret name",
        "status": {"code": 2, "message": "secret status"}, "attributes": attributes,
        "events": [{"name": "secret event", "timeUnixNano": "1",
            "attributes": [{"key": "k", "value": {"stringValue": "secret in event"}}]}],
        "links": [{"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203332",
            "attributes": [{"key": "k", "value": {"stringValue": "secret in link"}}]}]})
}

fn export(resource: Value, attributes: Value) -> Value {
    json!({"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [
        {"scope": {"name": "secret scope"}, "spans": [span(attributes)]}]}]})
}

fn all_attributes() -> Value {
    json!([
        {"key": "input.value", "value": {"stringValue": "a secret"}},
        {"key": "secret key", "value": {"arrayValue": {"values": [{"stringValue": "secret"}, {"intValue": "4111111111111111"}]}}},
        {"key": "map", "value": {"kvlistValue": {"values": [{"key": "secret", "value": {"doubleValue": 4111111111111111.0}}]}}},
        {"key": "session.id", "value": {"stringValue": "secret session"}},
        {"key": "bytes", "value": {"bytesValue": "c2VjcmV0"}},
        {"key": "loupe.redactions", "value": {"kvlistValue": {"values": [{"key": "word", "value": {"intValue": "3"}}]}}}
    ])
}

#[test]
fn all_texts_of_a_span_are_redacted_and_counted() {
    let resource = json!([{"key": "owner", "value": {"stringValue": "secret owner"}}]);
    let decoded = redacted(&export(resource, all_attributes()));
    assert!(!format!("{decoded:?}").contains("secret"), "{decoded:?}");
    let metadata: Value = serde_json::from_str(&decoded.groups[0].spans[0].metadata).unwrap();
    // Name, status, input, key, two items, key and value of the map, session, bytes, event, its attribute, link; 3 as sent.
    assert_eq!(metadata["loupe.redactions"], json!({"word": 13 + 3}));
    assert_eq!(metadata["map"], json!({"[REDACTED:word]": "[REDACTED:word]"}));
    assert_eq!(metadata["resource"]["owner"], "[REDACTED:word] owner");
}

#[test]
fn other_projects_are_unchanged_and_project_names_stay() {
    let project = |name: &str| json!([{"key": "openinference.project.name", "value": {"stringValue": name}}]);
    let open = redacted(&export(project("open"), all_attributes()));
    assert!(open.groups[0].spans[0].metadata.contains("secret key"));
    let named = redacted(&export(project("secret project"), json!([])));
    assert_eq!(named.groups[0].project_name.as_deref(), Some("secret project"));
}

#[test]
fn counts_of_an_exported_span_are_in_its_metadata() {
    let record = json!({"key": "loupe.record", "value": {"stringValue": "{\"kind\":\"other\"}"}});
    let metadata = json!({"key": "metadata", "value": {"stringValue": "{\"a\":\"secret\"}"}});
    for attributes in [json!([record, metadata]), json!([record])] {
        let decoded = redacted(&export(json!([]), attributes));
        let metadata: Value = serde_json::from_str(&decoded.groups[0].spans[0].metadata).unwrap();
        assert!(metadata["loupe.redactions"]["word"].is_number(), "{metadata}");
    }
}

#[test]
fn counts_attribute_with_text_is_redacted() {
    for value in [
        json!({"stringValue": "secret"}),
        json!({"kvlistValue": {"values": [{"key": "a", "value": {"stringValue": "secret"}}]}}),
        json!({"kvlistValue": {"values": [{"key": "Secret secret", "value": {"intValue": "1"}}]}}),
    ] {
        let decoded = redacted(&export(json!([]), json!([{"key": "loupe.redactions", "value": value}])));
        assert!(!format!("{decoded:?}").contains("secret"), "{decoded:?}");
    }
    let counts = json!({"kvlistValue": {"values": [{"key": "a", "value": {"stringValue": "secret"}}]}});
    let nested = json!({"kvlistValue": {"values": [{"key": "loupe.redactions", "value": counts}]}});
    let decoded = redacted(&export(json!([]), json!([{"key": "map", "value": nested}])));
    assert!(!format!("{decoded:?}").contains("secret"), "{decoded:?}");
}

#[test]
fn small_numbers_and_lists_with_a_text_are_searched() {
    let mut values = vec![json!({"doubleValue": 0.5}); 80];
    values.push(json!({"stringValue": "secret"}));
    let decoded = redacted(&export(
        json!([{"key": "openinference.project.name", "value": {"stringValue": "a"}},
            {"key": "openinference.project.name", "value": {"stringValue": "secret"}}]),
        json!([{"key": "small", "value": {"intValue": "4711"}}, {"key": "other", "value": {"intValue": "4711"}},
            {"key": "small", "value": {"doubleValue": 0.4711}}, {"key": "list", "value": {"arrayValue": {"values": values}}}]),
    ));
    let text = format!("{decoded:?}");
    assert!(!text.contains("secret") && !text.contains("0.4711") && text.contains("4711"), "{text}");
}

#[test]
fn counts_are_added_to_objects() {
    let counts = RedactionCounts::from([("email".to_owned(), 2)]);
    for (object, expected) in [
        ("{}", Some(r#"{"loupe.redactions":{"email":2}}"#)),
        (r#"{"a": 1 } "#, Some(r#"{"a": 1 ,"loupe.redactions":{"email":2}}"#)),
        (
            r#"{"loupe.redactions":{"email":1,"phone":1}}"#,
            Some(r#"{"loupe.redactions":{"email":3,"phone":1}}"#),
        ),
        (r#"{"loupe.redactions":7}"#, Some(r#"{"loupe.redactions":{"email":2}}"#)),
        ("[1]", None),
        ("null", None),
    ] {
        assert_eq!(with_counts(object, &counts).as_deref(), expected, "{object}");
    }
}
