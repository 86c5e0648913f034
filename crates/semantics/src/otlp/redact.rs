//! Redacts decoded OTLP messages before they are converted, so that no convention sees, moves or repeats a masked value.
//!
//! IDs, times, kinds and well-known keys stay as sent. Masked values in the attributes, events and
//! links of a span are counted in its attribute [`REDACTIONS_ATTRIBUTE`]. The texts of a resource and of a scope are redacted once, and are not counted.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, InstrumentationScope, KeyValue, KeyValueList, any_value::Value},
    logs::v1::LogRecord,
    resource::v1::Resource,
    trace::v1::{ResourceSpans, Span},
};

use super::{PROJECT_NAME_ATTRIBUTE, keys::Key, record::RECORD_ATTRIBUTE};

/// The attribute of a span, and the member of metadata, with the number of masked values by kind.
pub const REDACTIONS_ATTRIBUTE: &str = "loupe.redactions";
/// The attribute with the application's own metadata, which an exported span has.
const METADATA_ATTRIBUTE: &str = "metadata";
/// The smallest number that a detector finds without words.
const MIN_SEARCHED_NUMBER: f64 = 1_000_000.0;
/// The smallest whole number that is written with an exponent.
const MAX_PLAIN_DOUBLE: f64 = 1e21;
/// The fewest numbers of an embedding.
const MIN_VECTOR_NUMBERS: usize = 64;
/// Maximum length of a kind in bytes.
const MAX_KIND_BYTES: usize = 32;

/// Number of masked values by kind.
pub type RedactionCounts = BTreeMap<String, u64>;

/// Masks values in texts, as a project has set.
pub trait Redact: Sync {
    /// Masks values in a text, or in the strings, keys and numbers of a JSON text.
    fn text(&self, text: &mut String, counts: &mut RedactionCounts);

    /// Like [`Redact::text`], with a label of the text, such as the key of an attribute.
    fn labelled_text(&self, label: &str, text: &mut String, counts: &mut RedactionCounts);

    /// Returns whether numbers with few digits and fractions with this label may be masked.
    fn searches_small_numbers(&self, _label: &str) -> bool {
        false
    }

    /// Masks values in the strings and keys of a JSON text, and keeps its numbers.
    fn json_strings(&self, text: &mut String, counts: &mut RedactionCounts);
}

/// Redacts a resource and its spans.
pub(super) fn resource_spans(sent: &mut ResourceSpans, redactor: &dyn Redact) {
    if let Some(it) = &mut sent.resource {
        resource(it, redactor);
    }
    for group in &mut sent.scope_spans {
        if let Some(it) = &mut group.scope {
            scope(it, redactor);
        }
        for it in &mut group.spans {
            span(it, redactor);
        }
    }
}

/// Redacts the attributes of a resource. The name of the project stays as sent, because it selects the settings.
pub fn resource(resource: &mut Resource, redactor: &dyn Redact) {
    let mut counts = RedactionCounts::new();
    // The first one with text names the project; the decoder ignores further ones.
    let is_name = |it: &KeyValue| {
        it.key == PROJECT_NAME_ATTRIBUTE
            && matches!(it.value.as_ref().and_then(|it| it.value.as_ref()), Some(Value::StringValue(_)))
    };
    let name = resource.attributes.iter().position(is_name);
    for (i, attribute) in resource.attributes.iter_mut().enumerate() {
        if Some(i) != name {
            key_value(attribute, redactor, &mut counts);
        }
    }
}

/// Redacts the name, the version and the attributes of a scope.
pub fn scope(scope: &mut InstrumentationScope, redactor: &dyn Redact) {
    let mut counts = RedactionCounts::new();
    redactor.text(&mut scope.name, &mut counts);
    redactor.text(&mut scope.version, &mut counts);
    key_values(&mut scope.attributes, redactor, &mut counts);
}

/// Redacts a span, its events and its links, and adds the counts to its attributes.
fn span(span: &mut Span, redactor: &dyn Redact) {
    let mut counts = RedactionCounts::new();
    redactor.text(&mut span.name, &mut counts);
    redactor.text(&mut span.trace_state, &mut counts);
    if let Some(status) = &mut span.status {
        redactor.text(&mut status.message, &mut counts);
    }
    key_values(&mut span.attributes, redactor, &mut counts);
    for event in &mut span.events {
        redactor.text(&mut event.name, &mut counts);
        key_values(&mut event.attributes, redactor, &mut counts);
    }
    for link in &mut span.links {
        redactor.text(&mut link.trace_state, &mut counts);
        key_values(&mut link.attributes, redactor, &mut counts);
    }
    add_counts(&mut span.attributes, &counts);
}

/// Redacts the body and the attributes of a log record, and adds the counts to its attributes.
pub(super) fn log_record(record: &mut LogRecord, redactor: &dyn Redact) {
    let mut counts = RedactionCounts::new();
    redactor.text(&mut record.event_name, &mut counts);
    if let Some(body) = &mut record.body {
        any_value(body, redactor, &mut counts);
    }
    key_values(&mut record.attributes, redactor, &mut counts);
    add_counts(&mut record.attributes, &counts);
}

/// Returns whether an attribute has counts of an earlier redaction: a map from kinds to numbers, which hides no text.
fn is_counts(attribute: &KeyValue) -> bool {
    let is_kind = |it: &str| {
        it.len() <= MAX_KIND_BYTES
            && it.starts_with(|it: char| it.is_ascii_lowercase())
            && it.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_')
    };
    let value = |it: &KeyValue| it.value.as_ref().and_then(|it| it.value.clone());
    attribute.key == REDACTIONS_ATTRIBUTE
        && match attribute.value.as_ref().and_then(|it| it.value.as_ref()) {
            Some(Value::KvlistValue(list)) => {
                list.values.iter().all(|it| is_kind(&it.key) && matches!(value(it), Some(Value::IntValue(_))))
            }
            _ => false,
        }
}

/// Takes the counts out of attributes.
pub(super) fn move_counts(from: &mut Vec<KeyValue>, counts: &mut RedactionCounts) {
    for sent in from.extract_if(.., |it| is_counts(it)) {
        add_sent_counts(sent, counts);
    }
}

/// Adds the counts in the value of an attribute.
fn add_sent_counts(sent: KeyValue, counts: &mut RedactionCounts) {
    let Some(Value::KvlistValue(list)) = sent.value.and_then(|it| it.value) else { return };
    for it in list.values {
        if let Some(Value::IntValue(count)) = it.value.and_then(|it| it.value)
            && let Ok(count) = u64::try_from(count)
        {
            let total = counts.entry(it.key).or_default();
            *total = total.saturating_add(count);
        }
    }
}

/// Redacts attributes: their values, and the keys that no convention defines. Counts of an earlier redaction stay.
pub fn key_values(list: &mut [KeyValue], redactor: &dyn Redact, counts: &mut RedactionCounts) {
    for attribute in list.iter_mut().filter(|it| !is_counts(it)) {
        key_value(attribute, redactor, counts);
    }
}

/// Redacts a value, and the keys and values that it contains. The decoders limit the depth.
pub fn any_value(value: &mut AnyValue, redactor: &dyn Redact, counts: &mut RedactionCounts) {
    labelled_value(value, "", redactor, counts);
}

fn key_value(attribute: &mut KeyValue, redactor: &dyn Redact, counts: &mut RedactionCounts) {
    let KeyValue { key, value, .. } = attribute;
    match value {
        Some(AnyValue { value: Some(Value::StringValue(text)) }) if key == RECORD_ATTRIBUTE => {
            redactor.json_strings(text, counts);
        }
        Some(value) => labelled_value(value, key, redactor, counts),
        None => {}
    }
    if Key::find(key).is_none() {
        redactor.text(key, counts);
    }
}

fn labelled_value(value: &mut AnyValue, label: &str, redactor: &dyn Redact, counts: &mut RedactionCounts) {
    let Some(value) = &mut value.value else { return };
    match value {
        Value::StringValue(text) if label.is_empty() => redactor.text(text, counts),
        Value::StringValue(text) => redactor.labelled_text(label, text, counts),
        Value::ArrayValue(list) if is_vector(&list.values) => {}
        Value::ArrayValue(list) => {
            for item in &mut list.values {
                labelled_value(item, label, redactor, counts);
            }
        }
        Value::KvlistValue(list) => {
            for attribute in &mut list.values {
                key_value(attribute, redactor, counts);
            }
        }
        Value::IntValue(number)
            if number.unsigned_abs() as f64 >= MIN_SEARCHED_NUMBER
                || redactor.searches_small_numbers(label) =>
        {
            let digits = number.to_string();
            redact_number(value, digits, label, redactor, counts);
        }
        Value::DoubleValue(number)
            if number.is_finite()
                && (number.abs() >= MIN_SEARCHED_NUMBER || redactor.searches_small_numbers(label)) =>
        {
            // A fraction is searched as it is stored, a whole number without its `.0`.
            let digits = match number.fract() == 0.0 && number.abs() < MAX_PLAIN_DOUBLE {
                true => format!("{number:.0}"),
                false => format!("{number:?}"),
            };
            redact_number(value, digits, label, redactor, counts);
        }
        Value::BytesValue(bytes) => {
            if let Ok(text) = std::str::from_utf8(bytes) {
                let mut redacted = text.to_owned();
                let before: u64 = counts.values().sum();
                redactor.text(&mut redacted, counts);
                if counts.values().sum::<u64>() > before {
                    *bytes = redacted.into_bytes();
                }
            }
        }
        Value::IntValue(_) | Value::DoubleValue(_) | Value::BoolValue(_) | Value::StringValueStrindex(_) => {}
    }
}

/// Returns whether a list is an embedding: all items are numbers. Embeddings are not searched.
fn is_vector(values: &[AnyValue]) -> bool {
    values.len() >= MIN_VECTOR_NUMBERS
        && values.iter().all(
            |it| matches!(it.value, Some(Value::DoubleValue(number)) if number.abs() < MIN_SEARCHED_NUMBER),
        )
}

/// Replaces a number by a text if the redactor masks its digits.
fn redact_number(
    value: &mut Value,
    digits: String,
    label: &str,
    redactor: &dyn Redact,
    counts: &mut RedactionCounts,
) {
    let mut text = digits.clone();
    redactor.labelled_text(label, &mut text, counts);
    if text != digits {
        *value = Value::StringValue(text);
    }
}

/// Adds counts to attributes that become the metadata of a span or of a log record.
pub fn add_counts(attributes: &mut Vec<KeyValue>, counts: &RedactionCounts) {
    if counts.is_empty() {
        return;
    }
    // The metadata of an exported span is one attribute.
    let metadata = attributes.iter().position(|it| it.key == METADATA_ATTRIBUTE);
    if attributes.iter().any(|it| it.key == RECORD_ATTRIBUTE) {
        let text = match metadata.and_then(|it| attributes[it].value.as_mut()?.value.as_mut()) {
            Some(Value::StringValue(text)) => text,
            _ => {
                attributes.push(key_and_value(METADATA_ATTRIBUTE, Value::StringValue("{}".to_owned())));
                match attributes.last_mut().and_then(|it| it.value.as_mut()?.value.as_mut()) {
                    Some(Value::StringValue(text)) => text,
                    _ => return,
                }
            }
        };
        if let Some(with) = with_counts(text, counts) {
            *text = with;
        }
        return;
    }
    let mut total = counts.clone();
    move_counts(attributes, &mut total);
    let number = |it: u64| Value::IntValue(i64::try_from(it).unwrap_or(i64::MAX));
    let values = total.into_iter().map(|(kind, count)| key_and_value(&kind, number(count))).collect();
    attributes.push(key_and_value(REDACTIONS_ATTRIBUTE, Value::KvlistValue(KeyValueList { values })));
}

fn key_and_value(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

/// Returns the text of a JSON object with counts added to its member [`REDACTIONS_ATTRIBUTE`]; `None` if the text is not an
/// object.
pub fn with_counts(object: &str, counts: &RedactionCounts) -> Option<String> {
    let mut members: serde_json::Map<String, serde_json::Value>;
    let mut total = counts.clone();
    let object = object.trim_end();
    // The object is parsed as values only if it has counts already, from an earlier redaction.
    if object.contains(REDACTIONS_ATTRIBUTE) {
        members = serde_json::from_str(object).ok()?;
        let sent = members.remove(REDACTIONS_ATTRIBUTE);
        for (kind, count) in sent.as_ref().and_then(|it| it.as_object()).into_iter().flatten() {
            let total = total.entry(kind.clone()).or_default();
            *total = total.saturating_add(count.as_u64().unwrap_or(0));
        }
        members.insert(REDACTIONS_ATTRIBUTE.to_owned(), serde_json::to_value(total).ok()?);
        return serde_json::to_string(&members).ok();
    }
    let open = object.strip_suffix('}').filter(|_| object.starts_with('{'))?;
    let separator = if open.trim_end() == "{" { "" } else { "," };
    let total = serde_json::to_string(&total).ok()?;
    Some(format!("{open}{separator}\"{REDACTIONS_ATTRIBUTE}\":{total}}}"))
}

#[cfg(test)]
mod tests;
