//! Comparison of arguments that ignores differences of notation.
//!
//! These are equal: members in another order; an omitted member and its default; an omitted optional member
//! and null; numbers in other notations; a text of digits and its number, if the schema accepts only the sent
//! form; an instant in another notation or zone; a UUID in another case, if the schema declares it a UUID.
//! Everything else differs: the case of words, a date and a time, the order of a list.

use serde_json::{Map, Number, Value};

use super::{instant, parameters::ParameterSchemas, shown_name};

/// Maximum nesting of compared arguments; parsed JSON does not exceed it.
const MAX_DEPTH: usize = 128;

/// Describes how two sets of arguments differ, without their values; none if they are equal. `subset`: the
/// sent arguments may contain more than the expected ones.
pub(crate) fn difference(
    expected: &Value,
    sent: &Value,
    schemas: &ParameterSchemas<'_>,
    subset: bool,
) -> Option<String> {
    let empty = Map::new();
    let expected = match expected {
        Value::Null => &empty,
        Value::Object(object) => object,
        _ => return Some("the expected arguments are not an object".to_owned()),
    };
    let bare;
    let sent = match sent {
        Value::Null => &empty,
        Value::Object(object) => object,
        // Some frameworks record a single argument without its object.
        bare_value => {
            let only = schemas.only_member().or_else(|| match expected.len() {
                1 => expected.keys().next().map(String::as_str),
                _ => None,
            });
            let Some(only) = only else { return Some("the arguments are not a JSON object".to_owned()) };
            bare = Map::from_iter([(only.to_owned(), bare_value.clone())]);
            &bare
        }
    };
    members(expected, sent, schemas, subset, "", 0)
}

fn members(
    expected: &Map<String, Value>,
    sent: &Map<String, Value>,
    schemas: &ParameterSchemas<'_>,
    subset: bool,
    path: &str,
    depth: usize,
) -> Option<String> {
    let place = |name: &str| match path {
        "" => format!("`{}`", shown_name(name)),
        path => format!("{path}.`{}`", shown_name(name)),
    };
    for (name, value) in expected {
        let member = schemas.member(name);
        let same = match sent.get(name) {
            Some(sent) => match different(value, sent, &member, subset, &place(name), depth + 1) {
                Some(difference) => return Some(difference),
                None => true,
            },
            None => left_out(value, &member, !schemas.requires(name)),
        };
        if !same {
            return Some(format!("{} is missing", place(name)));
        }
    }
    if subset {
        return None;
    }
    let more = sent.iter().find(|(name, value)| {
        !expected.contains_key(*name) && !left_out(value, &schemas.member(name), !schemas.requires(name))
    });
    more.map(|(name, _)| format!("{} is not expected", place(name)))
}

/// Returns whether omitting the value has the same meaning.
fn left_out(value: &Value, schemas: &ParameterSchemas<'_>, optional: bool) -> bool {
    match schemas.default() {
        Some(default) => different(default, value, schemas, false, "", 1).is_none(),
        None => value.is_null() && optional,
    }
}

fn different(
    expected: &Value,
    sent: &Value,
    schemas: &ParameterSchemas<'_>,
    subset: bool,
    place: &str,
    depth: usize,
) -> Option<String> {
    if depth > MAX_DEPTH {
        return Some(format!("{place} is nested too deep"));
    }
    let unless = |same: bool| (!same).then(|| format!("{place} differs"));
    match (expected, sent) {
        (Value::Object(expected), Value::Object(sent)) => {
            members(expected, sent, schemas, subset, place, depth)
        }
        (Value::Array(expected), Value::Array(sent)) => {
            if expected.len() != sent.len() {
                let (expected, sent) = (expected.len(), sent.len());
                return Some(format!("{place} has {sent} items; {expected} are expected"));
            }
            let item = schemas.item();
            let mut pairs = expected.iter().zip(sent).enumerate();
            pairs.find_map(|(at, (expected, sent))| {
                different(expected, sent, &item, subset, &format!("{place}[{at}]"), depth + 1)
            })
        }
        (Value::Number(expected), Value::Number(sent)) => unless(same_number(expected, sent)),
        (Value::String(expected), Value::String(sent)) => unless(same_text(expected, sent, schemas)),
        (Value::Number(number), Value::String(text)) => {
            unless(only_allows(schemas, "string", "number") && is_number(text, number))
        }
        (Value::String(text), Value::Number(number)) => {
            unless(only_allows(schemas, "number", "string") && is_number(text, number))
        }
        (expected, sent) if same_type(expected, sent) => unless(expected == sent),
        _ => Some(format!("{place} has another type")),
    }
}

/// Returns whether the schema accepts the sent form but not the expected form, so that both must mean the
/// same.
fn only_allows(schemas: &ParameterSchemas<'_>, sent: &str, expected: &str) -> bool {
    schemas.allows(sent) == Some(true) && schemas.allows(expected) == Some(false)
}

fn same_type(left: &Value, right: &Value) -> bool {
    std::mem::discriminant(left) == std::mem::discriminant(right)
}

/// Compares numbers by value: 5, 5.0 and 5e0 are equal; 2^53 and 2^53 + 1 differ.
fn same_number(left: &Number, right: &Number) -> bool {
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => left == right,
        (None, None) => left.as_f64() == right.as_f64(),
        _ => false,
    }
}

fn whole(number: &Number) -> Option<i128> {
    if let Some(number) = number.as_i64() {
        return Some(number.into());
    }
    if let Some(number) = number.as_u64() {
        return Some(number.into());
    }
    let number = number.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "whole, and far inside of 128 bits")]
    (number.fract() == 0.0 && number.abs() < 1e30).then_some(number as i128)
}

/// Returns whether a text is this number in plain digits.
fn is_number(text: &str, number: &Number) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = digits.starts_with(|it: char| it.is_ascii_digit())
        && digits.bytes().all(|it| it.is_ascii_digit() || it == b'.')
        // 007 is a code, not the number 7.
        && (!digits.starts_with('0') || digits.len() == 1 || digits.starts_with("0."));
    plain && serde_json::from_str::<Number>(text).is_ok_and(|it| same_number(&it, number))
}

fn same_text(expected: &str, sent: &str, schemas: &ParameterSchemas<'_>) -> bool {
    if expected == sent {
        return true;
    }
    if schemas.has_words() {
        return false;
    }
    if schemas.is_format("uuid") {
        return expected.eq_ignore_ascii_case(sent);
    }
    matches!((instant::read(expected), instant::read(sent)), (Some(left), Some(right)) if left == right)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(expected: Value, sent: Value, schema: Value, difference: Option<&str>) {
        let schema = Some(schema).filter(|it| !it.is_null());
        let found = super::difference(&expected, &sent, &ParameterSchemas::of(schema.as_ref()), false);
        assert_eq!(found.as_deref(), difference, "{expected} {sent}");
    }

    #[test]
    fn numbers_are_compared_by_value() {
        for (left, right) in [("5", "5.0"), ("5", "5e0"), ("0.5", "5e-1"), ("-0.0", "0"), ("1e3", "1000")] {
            let (left, right) = (serde_json::from_str(left).unwrap(), serde_json::from_str(right).unwrap());
            assert!(same_number(&left, &right), "{left} {right}");
        }
        let far = (
            serde_json::from_str("9007199254740993").unwrap(),
            serde_json::from_str("9007199254740992").unwrap(),
        );
        assert!(!same_number(&far.0, &far.1));
        check(json!({"a": 5}), json!({"a": 6}), Value::Null, Some("`a` differs"));
        check(json!({"a": 1}), json!({"a": true}), Value::Null, Some("`a` has another type"));
    }

    #[test]
    fn text_equals_number_only_if_schema_allows_text() {
        let schema = |word: &str| json!({"properties": {"a": {"type": word}}});
        check(json!({"a": 5}), json!({"a": "5"}), schema("string"), None);
        check(json!({"a": "5"}), json!({"a": 5.0}), schema("integer"), None);
        check(json!({"a": 5}), json!({"a": "5"}), schema("number"), Some("`a` differs"));
        check(json!({"a": 5}), json!({"a": "5"}), Value::Null, Some("`a` differs"));
        check(json!({"a": 7}), json!({"a": "007"}), schema("string"), Some("`a` differs"));
    }

    #[test]
    fn defaults_and_nulls_may_be_left_out() {
        let schema = json!({"properties": {"a": {}, "unit": {"type": "string", "default": "c"}, "b": {"type": ["string", "null"]}}, "required": ["a"]});
        check(json!({"a": 1}), json!({"a": 1, "unit": "c", "b": null}), schema.clone(), None);
        check(json!({"a": 1, "unit": "c"}), json!({"a": 1}), schema.clone(), None);
        check(json!({"a": 1}), json!({"a": 1, "unit": "f"}), schema.clone(), Some("`unit` is not expected"));
        check(json!({"a": 1, "unit": "f"}), json!({"a": 1}), schema.clone(), Some("`unit` is missing"));
        check(json!({"a": 1}), json!({"a": 1, "unit": null}), schema.clone(), Some("`unit` is not expected"));
        check(json!({"a": null}), json!({}), schema, Some("`a` is missing"));
        check(json!({"x": null}), json!({}), Value::Null, None);
        check(json!({}), Value::Null, Value::Null, None);
    }

    #[test]
    fn texts_are_compared_exactly() {
        check(json!({"a": "Zurich"}), json!({"a": "zurich"}), Value::Null, Some("`a` differs"));
        check(
            json!({"a": "2026-11-22T10:00:00Z"}),
            json!({"a": "2026-11-22T11:00:00+01:00"}),
            Value::Null,
            None,
        );
        check(
            json!({"a": "2026-11-22T10:00:00Z"}),
            json!({"a": "2026-11-22T10:00:00"}),
            Value::Null,
            Some("`a` differs"),
        );
        let id = json!({"properties": {"a": {"type": "string", "format": "uuid"}}});
        check(json!({"a": "AB"}), json!({"a": "ab"}), id, None);
        check(json!({"a": ["x", "y"]}), json!({"a": ["y", "x"]}), Value::Null, Some("`a`[0] differs"));
    }

    #[test]
    fn bare_value_is_the_only_argument() {
        check(json!({"city": "Zürich"}), json!("Zürich"), Value::Null, None);
        check(
            json!({"city": "Zürich", "unit": "c"}),
            json!("Zürich"),
            Value::Null,
            Some("the arguments are not a JSON object"),
        );
    }

    #[test]
    fn subset_allows_further_arguments() {
        let schemas = ParameterSchemas::of(None);
        let (expected, sent) = (json!({"a": {"b": 1}}), json!({"a": {"b": 1, "c": 2}, "d": 3}));
        assert_eq!(difference(&expected, &sent, &schemas, true), None);
        assert_eq!(difference(&expected, &sent, &schemas, false).as_deref(), Some("`a`.`c` is not expected"));
    }
}
