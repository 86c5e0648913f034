//! Validates and normalizes texts and objects that clients send.

use std::fmt;

use api::{ErrorCode, search::DIMENSIONS, trace::RawObject};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use store::{
    row_text::{MAX_LABEL, MAX_ROW_TEXT_BYTES},
    vectors::UnitVector,
};

use crate::error::Problem;

/// Validates a text of at most [`MAX_LABEL`] characters.
///
/// # Errors
///
/// Fails with `validation_failed` and the field.
pub fn validate_label(field: &str, text: Option<String>) -> Result<Option<String>, Problem> {
    validate_text(field, text, MAX_LABEL)
}

/// Validates a text of at most `max_chars` characters.
///
/// # Errors
///
/// Fails with `validation_failed` and the field.
pub fn validate_text(field: &str, text: Option<String>, max_chars: usize) -> Result<Option<String>, Problem> {
    let Some(text) = text else { return Ok(None) };
    if text.chars().nth(max_chars).is_some() {
        return Err(Problem::field(field, format!("is longer than {max_chars} characters")));
    }
    Ok(Some(without_nul(text)))
}

/// Validates that a text has at most [`MAX_ROW_TEXT_BYTES`].
///
/// # Errors
///
/// Fails with `validation_failed` and the field.
pub fn validate_row_text(field: &str, text: String) -> Result<String, Problem> {
    if text.len() > MAX_ROW_TEXT_BYTES {
        return Err(Problem::field(field, format!("is longer than {MAX_ROW_TEXT_BYTES} bytes")));
    }
    Ok(without_nul(text))
}

/// Converts a complete vector that a caller sent in `field`.
///
/// # Errors
///
/// Fails with `validation_failed` and the field.
pub fn validate_vector(field: &str, numbers: &[f32]) -> Result<UnitVector, Problem> {
    if numbers.len() != DIMENSIONS {
        let message = format!("must have {DIMENSIONS} numbers; it has {}", numbers.len());
        return Err(Problem::field(field, message));
    }
    UnitVector::of(numbers).map_err(|it| Problem::field(field, it.to_string()))
}

/// Validates that a value is a JSON object and returns its text, in which NUL is replaced. Null counts as absent.
///
/// # Errors
///
/// Fails with `invalid_body` and the field.
pub fn validate_object(field: &str, raw: Option<RawObject>) -> Result<Option<String>, Problem> {
    let Some(raw) = raw else { return Ok(None) };
    let invalid = |why: String| Problem::new(ErrorCode::InvalidBody, format!("{field}: {why}"));
    // Parsing without building values: a tree takes many times the memory of its text.
    match serde_json::from_str(raw.get()).map_err(|it| invalid(api::plain::json_error(&it)))? {
        JsonShape::Null => Ok(None),
        JsonShape::Object => Ok(Some(without_nul_escapes(String::from(Box::<str>::from(raw))))),
        JsonShape::Other => Err(invalid("must be an object".to_owned())),
    }
}

/// The type of a JSON value.
enum JsonShape {
    Null,
    Object,
    Other,
}

impl<'de> Deserialize<'de> for JsonShape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Strings and numbers are decoded, so that invalid ones are rejected.
        deserializer.deserialize_any(JsonShapeVisitor)
    }
}

struct JsonShapeVisitor;

impl<'de> Visitor<'de> for JsonShapeVisitor {
    type Value = JsonShape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<JsonShape, E> {
        Ok(JsonShape::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<JsonShape, E> {
        Ok(JsonShape::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<JsonShape, E> {
        Ok(JsonShape::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<JsonShape, E> {
        Ok(JsonShape::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<JsonShape, E> {
        Ok(JsonShape::Other)
    }

    fn visit_unit<E>(self) -> Result<JsonShape, E> {
        Ok(JsonShape::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonShape, A::Error> {
        while items.next_element::<JsonShape>()?.is_some() {}
        Ok(JsonShape::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<JsonShape, A::Error> {
        while members.next_entry::<JsonShape, JsonShape>()?.is_some() {}
        Ok(JsonShape::Object)
    }
}

/// Replaces NUL by U+FFFD in valid JSON, where NUL can occur only as an escape.
fn without_nul_escapes(json: String) -> String {
    const NUL: &str = "\\u0000";
    if !json.contains(NUL) {
        return json;
    }
    let mut written = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        written.push_str(before);
        if let Some(after) = escape.strip_prefix(NUL) {
            written.push_str("\\ufffd");
            rest = after;
        } else {
            // Skips the escaped character, so that an escaped backslash does not begin an escape.
            let end = escape.char_indices().nth(2).map_or(escape.len(), |it| it.0);
            written.push_str(&escape[..end]);
            rest = &escape[end..];
        }
    }
    written.push_str(rest);
    written
}

/// Replaces NUL, which PostgreSQL cannot store in a text, by U+FFFD.
pub fn without_nul(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}
