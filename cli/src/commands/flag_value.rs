//! Values of flags that accept inline JSON, a file or stdin.

use std::{io::Read, path::Path};

use serde_json::{Map, Value};

use crate::error::{CliError, Result};

/// Maximum size of a value in bytes. The limit of the server is lower.
const MAX_VALUE_BYTES: u64 = 4 << 20;

/// Reads a JSON object: inline, from a file, or from stdin for `-`.
pub fn object(flag: &str, given: &str) -> Result<Map<String, Value>> {
    match value(flag, given)? {
        Value::Object(members) => Ok(members),
        other => Err(CliError::usage(format!("{flag}: the value is {}, not a JSON object", kind(&other)))
            .hint(format!("{flag} FILE, {flag} - for stdin, or {flag} '{{\"threshold\": 0.8}}'"))),
    }
}

/// Reads any JSON: inline if the text begins like an object or an array, otherwise from a file, or from
/// stdin for `-`.
pub fn value(flag: &str, given: &str) -> Result<Value> {
    let inline = given.trim_start().starts_with(['{', '[']);
    let (place, text) = if inline { (flag, given.to_owned()) } else { (given, text(flag, given)?) };
    serde_json::from_str(&text).map_err(|error| {
        let place = if inline { flag.to_owned() } else { format!("{flag}: {}", name(place)) };
        CliError::usage(format!("{place}: {}", api::plain::json_error(&error)))
    })
}

/// Reads the text of a file, or of stdin for `-`.
pub fn text(flag: &str, file: &str) -> Result<String> {
    let mut text = String::new();
    let read = match file {
        "-" => std::io::stdin().take(MAX_VALUE_BYTES + 1).read_to_string(&mut text),
        path => {
            std::fs::File::open(path).and_then(|it| it.take(MAX_VALUE_BYTES + 1).read_to_string(&mut text))
        }
    };
    let place = name(file);
    if let Err(error) = read {
        let failed = CliError::usage(format!("{flag}: {place}: {}", api::plain::io_error(&error)));
        let is_text = file.contains(char::is_whitespace);
        let hint = format!("{flag} takes the name of a file, or - and the text on stdin");
        return Err(if is_text { failed.hint(hint) } else { failed });
    }
    if text.len() as u64 > MAX_VALUE_BYTES {
        return Err(CliError::usage(format!("{flag}: {place}: more than {} MiB", MAX_VALUE_BYTES >> 20)));
    }
    if text.trim().is_empty() {
        let failed = CliError::usage(format!("{flag}: {place} is empty"));
        return Err(if file == "-" { failed.hint("only one flag can be read from stdin") } else { failed });
    }
    Ok(text)
}

/// Reads a secret from a file, or from stdin for `-`, without a line break at its end.
pub fn secret(flag: &str, file: &Path) -> Result<String> {
    let text = text(flag, &file.to_string_lossy())?;
    Ok(without_line_break(&text).to_owned())
}

/// Returns a text without the line break that editors add at its end.
pub fn without_line_break(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

fn name(file: &str) -> &str {
    if file == "-" { "stdin" } else { file }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_value_is_read_inline_or_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        std::fs::write(&path, " {\"threshold\": 0.9}\n").unwrap();
        let path = path.to_str().unwrap();
        let config = json!({"threshold": 0.9});
        for given in [" {\"threshold\":0.9}", path] {
            assert_eq!(Some(&object("--config", given).unwrap()), config.as_object(), "{given}");
        }
        assert_eq!(value("--checks", "[1]").unwrap(), json!([1]));
    }

    #[test]
    fn invalid_value_error_names_flag_and_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = |content: &str| {
            let path = dir.path().join(format!("of-{}", content.len()));
            std::fs::write(&path, content).unwrap();
            path.to_str().unwrap().to_owned()
        };
        for (given, part) in [
            (file("[1]"), "--config: the value is an array"),
            (file(""), "is empty"),
            (file("{"), "the JSON ends too early"),
            ("{\"a\"".to_owned(), "--config: the JSON ends too early"),
            ("/nowhere/at/all".to_owned(), "--config: /nowhere/at/all: "),
        ] {
            let error = object("--config", &given).unwrap_err();
            assert!(error.message.contains(part), "{given}: {}", error.message);
        }
        let error = text("--rubric", "Is the answer polite?").unwrap_err();
        assert!(error.hint.unwrap().contains("--rubric takes the name of a file"));
    }
}
