//! Describes type errors in JSON bodies, with the path of the field.

use api::{ErrorCode, object::Object};
use serde::Deserialize;
use serde_path_to_error::Path;

use crate::error::{Error, problem};

/// Maximum number of characters of a value that a message repeats.
const MAX_SHOWN_CHARACTERS: usize = 100;

/// Describes why a JSON text is not an object of type `T`, such as
/// `spans[0].name: expected a string, found a number`.
pub fn describe<'a, T: Deserialize<'a>>(json: &'a [u8], error: &serde_json::Error) -> Error {
    // Paths are only tracked after an error, because tracking them takes time.
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let message = match serde_path_to_error::deserialize::<_, Object<T>>(&mut deserializer) {
        Ok(_) => describe_mismatch(None, error),
        Err(located) => describe_mismatch(field(located.path()).as_deref(), located.inner()),
    };
    problem(ErrorCode::InvalidBody, message)
}

/// Returns the path of a field; none for the body as a whole.
fn field(path: &Path) -> Option<String> {
    // The path of a field inside an enum has an unknown segment, which tells the caller nothing.
    let path = path.to_string().replace(".?", "");
    (!matches!(path.as_str(), "." | "?" | "")).then_some(path)
}

fn describe_mismatch(field: Option<&str>, error: &serde_json::Error) -> String {
    let text = error.to_string();
    // The path replaces the position.
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |it| it.0);
    match (mismatch(text), field) {
        (Some((expected, found)), Some(field)) => format!("{field}: expected {expected}, found {found}"),
        (Some((expected, found)), None) => format!("the body must be {expected}, not {found}"),
        (None, Some(field)) => format!("{field}: {text}"),
        (None, None) => text.to_owned(),
    }
}

/// Extracts the expected and the actual type or value from an error message of serde.
fn mismatch(text: &str) -> Option<(String, String)> {
    if let Some(rest) = text.strip_prefix("invalid type: ") {
        let (found, expected) = rest.rsplit_once(", expected ")?;
        // A fraction is a number too, so only its value explains the error.
        let is_fraction = found.starts_with("floating");
        return Some((
            expectation(expected),
            if is_fraction { content(found) } else { kind(found).to_owned() },
        ));
    }
    if let Some(rest) = text.strip_prefix("invalid value: ") {
        let (found, expected) = rest.rsplit_once(", expected ")?;
        return Some((expectation(expected), content(found)));
    }
    let rest = text.strip_prefix("unknown variant ")?;
    let (found, expected) = rest.rsplit_once(", expected ")?;
    Some((expected.replace('`', "\""), shortened(&found.replace('`', "\""))))
}

/// Returns the type of a value that serde describes with its content, such as ``integer `5` ``.
fn kind(found: &str) -> &str {
    match found.split(' ').next().unwrap_or_default() {
        "boolean" => "a boolean",
        "integer" | "floating" | "number" => "a number",
        "string" | "character" => "a string",
        "sequence" => "a list",
        "map" => "an object",
        "null" | "unit" => "null",
        _ => "a value of another type",
    }
}

/// Returns the content of the value in a message of serde, or the type of a value without content.
fn content(found: &str) -> String {
    match found.split_once(['`', '"']) {
        Some((_, text)) if found.starts_with("string") => shortened(&format!("\"{text}")),
        Some((_, text)) => shortened(text.trim_end_matches('`')),
        None => kind(found).to_owned(),
    }
}

/// Returns the name of a type that serde expects.
fn expectation(expected: &str) -> String {
    let range = |least: i64, most: i64| format!("an integer from {least} to {most}");
    let name = match expected {
        "a borrowed string" | "a char" => "a string",
        "bool" => "a boolean",
        "i8" => return range(i8::MIN.into(), i8::MAX.into()),
        "i16" => return range(i16::MIN.into(), i16::MAX.into()),
        "i32" => return range(i32::MIN.into(), i32::MAX.into()),
        "u8" => return range(0, u8::MAX.into()),
        "u16" => return range(0, u16::MAX.into()),
        "u32" => return range(0, u32::MAX.into()),
        "i64" | "i128" | "isize" => "an integer",
        "u64" | "u128" | "usize" => "an integer of at least 0",
        "f32" | "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "an object",
        "unit" => "null",
        _ if expected.starts_with("struct ") => "an object",
        _ if expected.starts_with("tuple") || expected.starts_with("an array of") => "a list",
        _ => expected,
    };
    name.to_owned()
}

/// Cuts a long text that the caller sent.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<T: serde::de::DeserializeOwned>(json: &str) -> String {
        let error = serde_json::from_str::<Object<T>>(json).map(|_| ()).unwrap_err();
        match describe::<T>(json.as_bytes(), &error) {
            Error::Problem(problem) => {
                assert_eq!(problem.code, ErrorCode::InvalidBody);
                problem.message
            }
            Error::Internal(error) => panic!("{error}"),
        }
    }

    #[test]
    fn wrong_type_names_field_and_types() {
        use api::{feedback::NewFeedback, ingest::TraceItem};
        for (json, expected) in [
            (r#"{"name": {}}"#, "name: expected a string, found an object"),
            (r#"{"spans": [{"name": 5}]}"#, "spans[0].name: expected a string, found a number"),
            (r#"{"spans": [{"name": "a"}, 1.5]}"#, "spans[1]: expected an object, found 1.5"),
            (r#"{"spans": {}}"#, "spans: expected a list, found an object"),
            (r#"{"spans": [{}]}"#, "spans[0]: missing field `name`"),
            ("[]", "the body must be an object, not a list"),
            ("null", "the body must be an object, not null"),
        ] {
            assert_eq!(message::<TraceItem>(json), expected, "{json}");
        }
        assert_eq!(message::<NewFeedback>("{}"), "missing field `label`");
    }

    #[test]
    fn wrong_value_is_shown_up_to_a_limit() {
        #[derive(Debug, Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Level {
            Low,
            High,
        }
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only read")]
        struct TestBody {
            level: Option<Level>,
            count: Option<u32>,
        }
        assert_eq!(
            message::<TestBody>(r#"{"count": -1}"#),
            "count: expected an integer from 0 to 4294967295, found -1"
        );
        assert_eq!(
            message::<TestBody>(r#"{"count": 0.5}"#),
            "count: expected an integer from 0 to 4294967295, found 0.5"
        );
        assert_eq!(
            message::<TestBody>(r#"{"level": "x"}"#),
            "level: expected \"low\" or \"high\", found \"x\""
        );
        let long = message::<TestBody>(&format!(r#"{{"level": "{}"}}"#, "x".repeat(5_000)));
        assert!(long.len() < 300, "{long}");
    }
}
