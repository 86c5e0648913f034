//! Decodes JSON exports that the strict decoder rejects.
//!
//! Some senders deviate harmlessly from OTLP's JSON mapping: enumerations by name, numbers as text,
//! null for an empty list. This module normalizes the JSON and decodes it again, span by span, so that
//! an invalid span affects only itself and not its batch.

use opentelemetry_proto::tonic::{
    common::v1::InstrumentationScope,
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Decoded, Malformed};

/// Decodes the readable spans, and returns the positions of the others, which are counted in `decoded`.
pub(super) fn lenient(
    body: &[u8],
    decoded: &mut Decoded,
) -> Result<(Vec<ResourceSpans>, Vec<usize>), Malformed> {
    let mut body: Value = serde_json::from_slice(body)
        .map_err(|error| Malformed { message: format!("not an OTLP trace export: {error}") })?;
    let Value::Object(request) = &mut body else {
        return Err(Malformed { message: "not an OTLP trace export: expected an object".to_owned() });
    };
    let mut reader = LenientReader { decoded, next_index: 0, unreadable: Vec::new() };
    let resources = list(request, "resourceSpans")?.into_iter().map(|it| reader.resource_spans(it));
    let resources = resources.collect::<Result<_, _>>()?;
    Ok((resources, reader.unreadable))
}

/// Reads the spans of a request in their order.
struct LenientReader<'a> {
    decoded: &'a mut Decoded,
    /// The position of the next span in the request.
    next_index: usize,
    /// The positions of the spans that cannot be read.
    unreadable: Vec<usize>,
}

impl LenientReader<'_> {
    fn resource_spans(&mut self, sent: Value) -> Result<ResourceSpans, Malformed> {
        let mut sent = object(sent, "resourceSpans")?;
        let resource = part::<Resource>(&mut sent, "resource");
        let scope_spans = list(&mut sent, "scopeSpans")?
            .into_iter()
            .map(|scope| self.scope_spans(scope, resource.as_ref()))
            .collect::<Result<_, _>>()?;
        Ok(ResourceSpans { resource, scope_spans, schema_url: String::new() })
    }

    fn scope_spans(&mut self, sent: Value, resource: Option<&Resource>) -> Result<ScopeSpans, Malformed> {
        let mut sent = object(sent, "scopeSpans")?;
        let scope = part::<InstrumentationScope>(&mut sent, "scope");
        let mut spans = Vec::new();
        for mut span in list(&mut sent, "spans")? {
            let index = self.next_index;
            self.next_index += 1;
            normalize(&mut span);
            match serde_json::from_value::<Span>(span) {
                Ok(span) => spans.push(span),
                Err(error) => {
                    self.unreadable.push(index);
                    self.decoded.reject(index, resource, format!("unreadable span: {error}"));
                }
            }
        }
        Ok(ScopeSpans { scope, spans, schema_url: String::new() })
    }
}

/// Decodes a part of the sender's description; an invalid one is dropped rather than its spans.
pub(super) fn part<T: DeserializeOwned>(owner: &mut Map<String, Value>, field: &str) -> Option<T> {
    let mut sent = owner.remove(field)?;
    normalize(&mut sent);
    serde_json::from_value(sent).ok()
}

pub(super) fn object(value: Value, what: &str) -> Result<Map<String, Value>, Malformed> {
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(Malformed { message: format!("not an OTLP export: {what} must contain objects") }),
    }
}

pub(super) fn list(owner: &mut Map<String, Value>, field: &str) -> Result<Vec<Value>, Malformed> {
    match owner.remove(field) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(Malformed { message: format!("not an OTLP export: {field} must be a list") }),
    }
}

/// Normalizes common deviations to the exact mapping. The parser limits the depth.
pub(super) fn normalize(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(normalize);
        }
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            // Not used here, and rejected by the decoder when incomplete.
            fields.remove("entityRefs");
            for (name, value) in fields.iter_mut() {
                normalize(value);
                normalize_field(name, value);
            }
        }
        _ => {}
    }
}

fn normalize_field(name: &str, value: &mut Value) {
    match (name, &mut *value) {
        ("arrayValue" | "kvlistValue", Value::Object(list)) => {
            list.entry("values").or_insert_with(|| Value::Array(Vec::new()));
        }
        ("doubleValue", Value::String(text)) => {
            let number = text.trim().parse::<f64>().ok().and_then(serde_json::Number::from_f64);
            // JSON has no NaN and no infinity, and neither is a useful measurement.
            *value = number.map_or(Value::Null, Value::Number);
        }
        (
            "intValue" | "startTimeUnixNano" | "endTimeUnixNano" | "timeUnixNano" | "observedTimeUnixNano",
            Value::Number(number),
        ) => {
            if let Some(whole) = number.as_f64().filter(|_| number.is_f64()).filter(|it| it.fract() == 0.0) {
                *value = Value::String(format!("{whole:.0}"));
            }
        }
        (
            "startTimeUnixNano" | "endTimeUnixNano" | "timeUnixNano" | "observedTimeUnixNano",
            Value::String(text),
        ) if text.is_empty() => {
            *value = Value::String("0".to_owned());
        }
        ("bytesValue", Value::String(text)) => *text = text.replace('-', "+").replace('_', "/"),
        ("boolValue", Value::String(text)) => {
            let truth = text.eq_ignore_ascii_case("true");
            *value = Value::Bool(truth);
        }
        ("kind", Value::String(word)) => *value = Value::from(position(word, "SPAN_KIND_", SPAN_KIND_NAMES)),
        ("code", Value::String(word)) => {
            *value = Value::from(position(word, "STATUS_CODE_", STATUS_CODE_NAMES))
        }
        _ => {}
    }
}

const SPAN_KIND_NAMES: &[&str] = &["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"];
const STATUS_CODE_NAMES: &[&str] = &["UNSET", "OK", "ERROR"];

/// Returns the number of an enumeration's name; 0 for an unknown name.
fn position(word: &str, prefix: &str, words: &[&str]) -> usize {
    let bare = word.strip_prefix(prefix).unwrap_or(word);
    words
        .iter()
        .position(|known| known.eq_ignore_ascii_case(bare))
        .or_else(|| bare.parse().ok().filter(|number| *number < words.len()))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::super::from_json;

    fn body(span: serde_json::Value) -> Vec<u8> {
        let good = json!({"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "good"});
        json!({"resourceSpans": [{"resource": null, "scopeSpans": [{"spans": [span, good]}]}]})
            .to_string()
            .into_bytes()
    }

    #[test]
    fn harmless_json_deviations_are_accepted() {
        let decoded = from_json(&body(json!({
            "traceId": "0AF7651916CD43DD8448EB211C80319C", "spanId": "b7ad6b7169203332", "parentSpanId": null,
            "name": "odd", "kind": "SPAN_KIND_CLIENT", "status": {"code": "STATUS_CODE_ERROR", "message": "late"},
            "startTimeUnixNano": 1.0e18, "endTimeUnixNano": "", "events": null, "links": null,
            "attributes": [
                {"key": "list", "value": {"arrayValue": {}}},
                {"key": "n", "value": {"doubleValue": "1.5"}},
                {"key": "nan", "value": {"doubleValue": "NaN"}},
                {"key": "i", "value": {"intValue": 3.0}},
                {"key": "b", "value": {"bytesValue": "-_8="}}
            ]
        })))
        .unwrap();
        assert_eq!((decoded.accepted, decoded.rejected), (2, 0), "{:?}", decoded.rejections);
        let span = &decoded.groups[0].spans[0];
        assert_eq!(span.error.as_deref(), Some("late"));
        assert_eq!((span.start_us, span.end_us), (Some(1_000_000_000_000_000), None));
        assert_eq!(span.metadata, r#"{"n":1.5,"i":3,"b":"(2 bytes)"}"#);
    }

    #[test]
    fn invalid_span_is_rejected_alone() {
        for bad in [
            json!({"traceId": "xyz", "spanId": "b7ad6b7169203332", "name": "bad"}),
            json!({"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "", "name": "bad"}),
            json!({"traceId": "00000000000000000000000000000000", "spanId": "b7ad6b7169203332"}),
            json!({"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203332", "name": 7}),
            json!("not a span"),
        ] {
            let decoded = from_json(&body(bad.clone())).unwrap();
            assert_eq!((decoded.accepted, decoded.rejected), (1, 1), "{bad}");
            assert_eq!(decoded.rejections.len(), 1);
            assert_eq!(decoded.rejections[0].index, 0);
        }
    }

    #[test]
    fn json_that_is_not_an_export_is_rejected() {
        for bad in
            ["", "{", "[]", "7", r#"{"resourceSpans": 7}"#, r#"{"resourceSpans": [7]}"#, &"[".repeat(100_000)]
        {
            assert!(from_json(bad.as_bytes()).is_err(), "{}", bad.get(..20).unwrap_or(bad));
        }
        assert_eq!(from_json(b"{}").unwrap().accepted, 0);
    }
}
