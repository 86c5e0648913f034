//! Texts and objects that callers send, as they are stored.

use api::{ErrorCode, trace::RawObject};

use super::part::MAX_LABEL;
use crate::error::Problem;

/// A text of at most [`MAX_LABEL`] characters.
///
/// # Errors
/// `validation_failed` with the field.
pub fn label(field: &str, text: Option<String>) -> Result<Option<String>, Problem> {
    short(field, text, MAX_LABEL)
}

/// A text of at most `most` characters.
///
/// # Errors
/// `validation_failed` with the field.
pub fn short(field: &str, text: Option<String>, most: usize) -> Result<Option<String>, Problem> {
    let Some(text) = text else { return Ok(None) };
    if text.chars().nth(most).is_some() {
        return Err(Problem::field(field, format!("is longer than {most} characters")));
    }
    Ok(Some(without_nul(text)))
}

/// The text of a JSON object, checked as a whole: what is stored must be readable for everyone.
///
/// # Errors
/// `invalid_body` with the field.
pub fn object(field: &str, raw: Option<RawObject>) -> Result<Option<String>, Problem> {
    let Some(raw) = raw else { return Ok(None) };
    let invalid = |why: String| Problem::new(ErrorCode::InvalidBody, format!("{field}: {why}"));
    let mut value: serde_json::Value =
        serde_json::from_str(raw.get()).map_err(|it| invalid(it.to_string()))?;
    match &value {
        serde_json::Value::Null => Ok(None),
        // A NUL can only be written as an escape; the value is written anew where there may be one.
        serde_json::Value::Object(_) if raw.get().contains("\\u0000") => {
            replace_nul(&mut value);
            Ok(Some(value.to_string()))
        }
        serde_json::Value::Object(_) => Ok(Some(raw.get().to_owned())),
        _ => Err(invalid("must be an object".to_owned())),
    }
}

/// U+FFFD in place of NUL in every string of a value. The reader bounds the depth.
fn replace_nul(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::String(text) => *text = without_nul(std::mem::take(text)),
        Value::Array(items) => items.iter_mut().for_each(replace_nul),
        Value::Object(members) => {
            *members = std::mem::take(members)
                .into_iter()
                .map(|(key, mut value)| {
                    replace_nul(&mut value);
                    (without_nul(key), value)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// U+FFFD in place of NUL, which PostgreSQL can't store in a text.
pub fn without_nul(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}
