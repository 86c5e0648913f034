//! The metadata of a span: everything that no field of the draft contains.
//!
//! Metadata of the application, in any convention, is written under its own keys; attributes keep their
//! full names; `resource`, `scope`, `tool`, `documents`, `links`, `request_model`, `response_id` and
//! `stream_chunks` are added by Loupe. Written directly to text, in one pass.

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    resource::v1::Resource,
    trace::v1::span::Link,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    attributes::Attributes,
    keys::{Group, Key},
    langsmith,
    text::push_json_str,
    value::{is_blank, write_json, write_object},
};

/// Keys that Loupe may add, here or at pricing. An attribute with one of these names, or with a name
/// already written, gets a prefix.
const RESERVED_KEYS: &[&str] = &["resource", "scope", "usage", "cost_details"];
/// Initial capacity in bytes, enough for a typical span.
const INITIAL_CAPACITY: usize = 512;

/// Writes the part that all spans of a scope share: `"resource":{…},"scope":{…}`, or nothing.
pub(super) fn shared(resource: Option<&Resource>, scope: Option<&InstrumentationScope>) -> String {
    let mut out = String::new();
    if let Some(resource) = resource.filter(|it| !it.attributes.is_empty()) {
        out.push_str("\"resource\":");
        write_object(&mut out, &resource.attributes);
    }
    if let Some(scope) = scope.filter(|it| !it.name.is_empty() || !it.version.is_empty()) {
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str("\"scope\":{\"name\":");
        push_json_str(&mut out, &scope.name);
        if !scope.version.is_empty() {
            out.push_str(",\"version\":");
            push_json_str(&mut out, &scope.version);
        }
        if !scope.attributes.is_empty() {
            out.push_str(",\"attributes\":");
            write_object(&mut out, &scope.attributes);
        }
        out.push('}');
    }
    out
}

/// Mapped values that have no field in the draft.
#[derive(Default)]
pub(super) struct MappedFields {
    /// The requested model, if a different one responded.
    pub(super) request_model: Option<String>,
    /// The provider's response ID.
    pub(super) response_id: Option<String>,
    /// Name of the tool called.
    pub(super) tool_name: Option<String>,
    /// The model's ID of the tool call.
    pub(super) tool_call_id: Option<String>,
    /// Retrieved documents as JSON, if they are not the output.
    pub(super) documents: Option<String>,
    /// Request parameters sent with the messages of a call, as JSON.
    pub(super) parameters: Option<String>,
    /// Finish reasons, as a JSON list.
    pub(super) finish_reasons: Option<String>,
    /// Number of stream chunks recorded as events.
    pub(super) chunks: usize,
    /// Links to other spans.
    pub(super) links: Vec<Link>,
}

/// Writes the metadata of a span.
pub(super) fn write(mut attributes: Attributes, extra: MappedFields, shared: &str) -> String {
    let mut out = ObjectWriter::new(shared.len());
    let MappedFields {
        request_model,
        response_id,
        tool_name,
        tool_call_id,
        documents,
        parameters,
        finish_reasons,
        chunks,
        links,
    } = extra;
    if let Some(model) = request_model {
        push_json_str(out.reserved("request_model"), &model);
    }
    if let Some(id) = response_id {
        push_json_str(out.reserved("response_id"), &id);
    }
    if tool_name.is_some() || tool_call_id.is_some() {
        let tool = out.reserved("tool");
        tool.push('{');
        if let Some(name) = &tool_name {
            tool.push_str("\"name\":");
            push_json_str(tool, name);
        }
        if let Some(id) = &tool_call_id {
            tool.push_str(if tool_name.is_some() { ",\"call_id\":" } else { "\"call_id\":" });
            push_json_str(tool, id);
        }
        tool.push('}');
    }
    if let Some(documents) = documents {
        out.json_or_text("documents", &documents);
    }
    if let Some(parameters) = parameters {
        out.json_or_text("request_parameters", &parameters);
    }
    if let Some(reasons) = finish_reasons {
        out.json_or_text("gen_ai.response.finish_reasons", &reasons);
    }
    if chunks > 0 {
        out.reserved("stream_chunks").push_str(&chunks.to_string());
    }
    if !links.is_empty() {
        write_links(out.reserved("links"), &links);
    }
    let own = write_application_metadata(&mut attributes, &mut out);
    for KeyValue { key, value, .. } in attributes.into_rest() {
        if let Some(AnyValue { value: Some(value) }) = value
            && !is_blank(&value)
            && own.binary_search(&key).is_err()
        {
            write_json(out.attribute(&key), &value);
        }
    }
    out.finish(shared)
}

fn write_links(out: &mut String, links: &[Link]) {
    out.push('[');
    for (at, Link { trace_id, span_id, attributes, .. }) in links.iter().enumerate() {
        out.push_str(if at > 0 { ",{\"trace_id\":\"" } else { "{\"trace_id\":\"" });
        push_hex(out, trace_id);
        out.push_str("\",\"span_id\":\"");
        push_hex(out, span_id);
        out.push('"');
        if !attributes.is_empty() {
            out.push_str(",\"attributes\":");
            write_object(out, attributes);
        }
        out.push('}');
    }
    out.push(']');
}

fn push_hex(out: &mut String, bytes: &[u8]) {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    out.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]));
}

/// Writes the application's own metadata under its own keys; the first of repeated keys counts. Returns
/// the keys, sorted, so that attributes of the same name can get a prefix.
fn write_application_metadata(attributes: &mut Attributes, out: &mut ObjectWriter) -> Vec<String> {
    let mut own: Vec<(String, MetadataValue)> = Vec::new();
    for key in [Key::Metadata, Key::LangfuseObservationMetadata, Key::LangfuseTraceMetadata] {
        let Some(sent) = attributes.str(key) else { continue };
        if let Ok(fields) = serde_json::from_str::<ObjectFields>(sent) {
            own.extend(fields.0.into_iter().map(|(key, value)| (key, MetadataValue::Json(value))));
            attributes.drop_key(key);
        }
    }
    for group in [Group::LangfuseObservation, Group::LangfuseTrace] {
        // This sender encodes every value as JSON, strings included.
        own.extend(
            attributes.take_group(group).into_iter().map(|(key, value)| (key, MetadataValue::decoded(value))),
        );
    }
    for group in [Group::Association, Group::AiMetadata, Group::Metadata] {
        own.extend(
            attributes.take_group(group).into_iter().map(|(key, value)| (key, MetadataValue::Value(value))),
        );
    }
    let langsmith = attributes.take_group(Group::LangsmithMetadata).into_iter();
    own.extend(
        langsmith
            .filter(|(key, _)| langsmith::is_metadata(key))
            .map(|(key, value)| (key, MetadataValue::Value(value))),
    );
    // A stable sort keeps the first of equal keys first.
    own.sort_by(|(left, _), (right, _)| left.cmp(right));
    own.dedup_by(|(later, _), (earlier, _)| later == earlier);
    own.into_iter()
        .map(|(key, value)| {
            match value {
                MetadataValue::Json(json) if matches!(json.get(), "null" | "\"\"") => {}
                MetadataValue::Json(json) => {
                    out.attribute(&key).push_str(&json.get().replace("\\u0000", "\\ufffd"))
                }
                MetadataValue::Value(value) => write_json(out.attribute(&key), &value),
            }
            key
        })
        .collect()
}

enum MetadataValue {
    Json(Box<RawValue>),
    Value(Value),
}

impl MetadataValue {
    fn decoded(value: Value) -> Self {
        match &value {
            Value::StringValue(text) => match serde_json::from_str(text) {
                Ok(json) => Self::Json(json),
                Err(_) => Self::Value(value),
            },
            _ => Self::Value(value),
        }
    }
}

/// The fields of a JSON object in order, values unparsed.
struct ObjectFields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for ObjectFields {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectFieldsVisitor;
        impl<'de> serde::de::Visitor<'de> for ObjectFieldsVisitor {
            type Value = ObjectFields;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<ObjectFields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(ObjectFields(fields))
            }
        }
        deserializer.deserialize_map(ObjectFieldsVisitor)
    }
}

/// A JSON object under construction.
struct ObjectWriter {
    out: String,
    /// Keys of [`RESERVED_KEYS`] that this object contains.
    written: Vec<&'static str>,
}

impl ObjectWriter {
    fn new(extra: usize) -> Self {
        let mut out = String::with_capacity(INITIAL_CAPACITY + extra);
        out.push('{');
        Self { out, written: Vec::new() }
    }

    /// Writes a key; the caller writes the value.
    fn key(&mut self, key: &str) -> &mut String {
        if self.out.len() > 1 {
            self.out.push(',');
        }
        push_json_str(&mut self.out, key);
        self.out.push(':');
        &mut self.out
    }

    /// Writes a key of [`RESERVED_KEYS`]; the caller writes the value.
    fn reserved(&mut self, key: &'static str) -> &mut String {
        self.written.push(key);
        self.key(key)
    }

    /// Writes an attribute's key; the caller writes the value.
    fn attribute(&mut self, key: &str) -> &mut String {
        if RESERVED_KEYS.contains(&key) || self.written.contains(&key) {
            self.key(&format!("attributes.{key}"))
        } else {
            self.key(key)
        }
    }

    fn json_or_text(&mut self, key: &'static str, text: &str) {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        let out = self.reserved(key);
        if is_json {
            out.push_str(text);
        } else {
            push_json_str(out, text);
        }
    }

    fn finish(mut self, shared: &str) -> String {
        if !shared.is_empty() {
            if self.out.len() > 1 {
                self.out.push(',');
            }
            self.out.push_str(shared);
        }
        self.out.push('}');
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    fn check(pairs: &[(&str, &str)], expected: &str) {
        let written = write(attributes(pairs), MappedFields::default(), "");
        assert_eq!(written, expected);
        assert!(serde_json::from_str::<serde_json::Value>(&written).is_ok());
    }

    #[test]
    fn application_metadata_keeps_its_own_keys() {
        check(
            &[
                ("metadata", r#"{"tier":"gold","n":1,"none":null}"#),
                ("traceloop.association.properties.tier", "silver"),
                ("langfuse.observation.metadata.step", "\"chain\""),
                ("langfuse.trace.metadata.note", "plain"),
                ("metadata.cost_usd", "3"),
                ("gen_ai.request.temperature", "0"),
                ("empty", ""),
            ],
            r#"{"cost_usd":3,"n":1,"note":"plain","step":"chain","tier":"gold","gen_ai.request.temperature":0}"#,
        );
    }

    #[test]
    fn malformed_application_metadata_remains_an_attribute() {
        check(
            &[("metadata", "[1]"), ("resource", "mine")],
            r#"{"metadata":"[1]","attributes.resource":"mine"}"#,
        );
        check(&[], "{}");
    }

    #[test]
    fn reserved_key_is_prefixed_only_when_used() {
        check(&[("documents", "[1]"), ("usage", "x")], r#"{"documents":"[1]","attributes.usage":"x"}"#);
        let extra = MappedFields { documents: Some("no json".to_owned()), ..MappedFields::default() };
        let written = write(attributes(&[("documents", "mine")]), extra, "");
        assert_eq!(written, r#"{"documents":"no json","attributes.documents":"mine"}"#);
    }

    #[test]
    fn span_links_are_kept() {
        let link = Link { trace_id: vec![0xab; 2], span_id: vec![1], ..Link::default() };
        let extra = MappedFields { links: vec![link.clone(), link], ..MappedFields::default() };
        let one = r#"{"trace_id":"abab","span_id":"01"}"#;
        assert_eq!(write(attributes(&[]), extra, ""), format!(r#"{{"links":[{one},{one}]}}"#));
    }

    #[test]
    fn shared_metadata_is_added_to_each_span() {
        let scope =
            InstrumentationScope { name: "a\"b".to_owned(), version: "1".to_owned(), ..Default::default() };
        let shared = shared(None, Some(&scope));
        let extra = MappedFields {
            tool_name: Some("f".to_owned()),
            documents: Some("[1]".to_owned()),
            ..MappedFields::default()
        };
        assert_eq!(
            write(attributes(&[]), extra, &shared),
            r#"{"tool":{"name":"f"},"documents":[1],"scope":{"name":"a\"b","version":"1"}}"#
        );
        assert_eq!(write(attributes(&[]), MappedFields::default(), &shared), format!("{{{shared}}}"));
    }
}
