//! Converts attribute values to text, numbers and JSON.

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};

use super::text::{clean, push_json_str};

/// The largest plausible token count; more than any model processes in one call.
const MAX_TOKENS: i64 = 1_000_000_000;

/// Shorter lists of numbers are kept: bounds, scores, logits.
const MIN_VECTOR_NUMBERS: usize = 64;

/// Whether a value is blank.
pub(super) fn is_blank(value: &Value) -> bool {
    match value {
        Value::StringValue(text) => text.is_empty(),
        Value::ArrayValue(list) => list.values.is_empty(),
        Value::KvlistValue(list) => list.values.is_empty(),
        Value::BytesValue(bytes) => bytes.is_empty(),
        Value::StringValueStrindex(_) => true,
        Value::BoolValue(_) | Value::IntValue(_) | Value::DoubleValue(_) => false,
    }
}

/// Converts a value to text: strings move, lists and maps become JSON. `None` for a blank value.
pub(super) fn into_text(value: Value) -> Option<String> {
    if is_blank(&value) {
        return None;
    }
    Some(match value {
        Value::StringValue(text) => clean(text),
        other => {
            let mut text = String::new();
            write_json(&mut text, &other);
            text
        }
    })
}

/// Returns a token count: a plausible whole number, as number or text.
pub(super) fn tokens(value: &Value) -> Option<i64> {
    match value {
        Value::IntValue(count) => (0..=MAX_TOKENS).contains(count).then_some(*count),
        other => count(number(other)?),
    }
}

/// Parses a token count, like [`tokens`].
pub(super) fn count(number: f64) -> Option<i64> {
    // Doubles beyond 2^53 are not exact; the range check rejects them.
    let is_count = number.fract() == 0.0 && (0.0..=MAX_TOKENS as f64).contains(&number);
    is_count.then_some(number as i64)
}

/// Returns a finite number, as number or text.
pub(super) fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::IntValue(number) => *number as f64,
        Value::DoubleValue(number) => *number,
        Value::StringValue(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// Writes the value as JSON. NaN and infinity become null; bytes become their count.
pub(super) fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::StringValue(text) => push_json_str(out, text),
        Value::BoolValue(true) => out.push_str("true"),
        Value::BoolValue(false) => out.push_str("false"),
        Value::IntValue(number) => push_display(out, number),
        Value::DoubleValue(number) if number.is_finite() => push_debug(out, number),
        Value::DoubleValue(_) | Value::StringValueStrindex(_) => out.push_str("null"),
        Value::ArrayValue(list) if is_vector(&list.values) => {
            push_json_str(out, &format!("({} numbers)", list.values.len()));
        }
        Value::ArrayValue(list) => {
            out.push('[');
            for (at, item) in list.values.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_any(out, item);
            }
            out.push(']');
        }
        Value::KvlistValue(list) => write_object(out, &list.values),
        Value::BytesValue(bytes) => push_json_str(out, &format!("({} bytes)", bytes.len())),
    }
}

/// Writes attributes as a JSON object, without blank ones.
pub(super) fn write_object(out: &mut String, attributes: &[KeyValue]) {
    out.push('{');
    let start = out.len();
    for KeyValue { key, value, .. } in attributes {
        if let Some(AnyValue { value: Some(value) }) = value
            && !is_blank(value)
        {
            if out.len() > start {
                out.push(',');
            }
            push_json_str(out, key);
            out.push(':');
            write_json(out, value);
        }
    }
    out.push('}');
}

/// Whether a list is an embedding: many fractions. Embeddings are not readable and larger than the rest
/// of the span.
pub(super) fn is_vector(values: &[AnyValue]) -> bool {
    values.len() >= MIN_VECTOR_NUMBERS && matches!(values[0].value, Some(Value::DoubleValue(_)))
}

fn write_any(out: &mut String, value: &AnyValue) {
    match &value.value {
        Some(value) => write_json(out, value),
        None => out.push_str("null"),
    }
}

fn push_display(out: &mut String, number: &i64) {
    use std::fmt::Write as _;
    // Writing into a String cannot fail.
    let _ = write!(out, "{number}");
}

/// Writes a double. Rust's debug form is the shortest that parses to the same value, and valid JSON.
fn push_debug(out: &mut String, number: &f64) {
    use std::fmt::Write as _;
    let _ = write!(out, "{number:?}");
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::ArrayValue;

    use super::*;

    fn text(value: &str) -> Value {
        Value::StringValue(value.to_owned())
    }

    #[test]
    fn token_counts_are_whole_and_plausible() {
        let cases = [
            (Value::IntValue(12), Some(12)),
            (Value::IntValue(0), Some(0)),
            (Value::IntValue(-1), None),
            (Value::IntValue(i64::MAX), None),
            (Value::DoubleValue(12.0), Some(12)),
            (Value::DoubleValue(12.5), None),
            (Value::DoubleValue(f64::NAN), None),
            (Value::DoubleValue(1e300), None),
            (text("12"), Some(12)),
            (text(" 12.0 "), Some(12)),
            (text("twelve"), None),
            (Value::BoolValue(true), None),
        ];
        for (value, expected) in cases {
            assert_eq!(tokens(&value), expected, "{value:?}");
        }
    }

    #[test]
    fn written_json_is_valid_for_unusual_values() {
        let list = |values: Vec<Value>| {
            Value::ArrayValue(ArrayValue {
                values: values.into_iter().map(|it| AnyValue { value: Some(it) }).collect(),
            })
        };
        let cases = [
            (Value::DoubleValue(1.0), "1.0"),
            (Value::DoubleValue(-0.5), "-0.5"),
            (Value::DoubleValue(1e300), "1e300"),
            (Value::DoubleValue(f64::INFINITY), "null"),
            (Value::BytesValue(vec![1, 2]), "\"(2 bytes)\""),
            (text("a\"\\\n\u{1}\0ü"), "\"a\\\"\\\\\\n\\u0001\u{fffd}ü\""),
            (list(vec![Value::DoubleValue(0.5); MIN_VECTOR_NUMBERS]), "\"(64 numbers)\""),
            (list(vec![Value::DoubleValue(0.5); 2]), "[0.5,0.5]"),
            (list(vec![Value::IntValue(1), text("x"), list(vec![])]), "[1,\"x\",[]]"),
        ];
        for (value, expected) in cases {
            let mut out = String::new();
            write_json(&mut out, &value);
            assert_eq!(out, expected);
            assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{out}");
        }
    }
}
