//! Parses texts of a trace as JSON, within limits.

use serde_json::{Map, Value};

use super::python;

/// Maximum size in bytes of a text that is parsed as JSON; longer texts stay text.
const MAX_TEXT_BYTES: usize = 2 * 1024 * 1024;
/// Maximum total size of the texts of a trace that are parsed as JSON, in bytes.
const MAX_PARSED_BYTES: usize = 16 * 1024 * 1024;

/// Maximum number of items of a list that is spread over keys.
const MAX_INDEXED_VALUES: usize = 256;

/// The number of bytes that may still be parsed for one trace, so that a trace of 2,000 huge spans costs no
/// more than a trace of a few.
pub(super) struct Budget(usize);

impl Budget {
    pub(super) fn new() -> Self {
        Self(MAX_PARSED_BYTES)
    }

    /// Parses the object or list in a text, as JSON or as Python prints it. Other values, such as a plain
    /// number, are ignored.
    pub(super) fn parse(&mut self, text: &str) -> Option<Value> {
        let text = text.trim();
        if !text.starts_with(['{', '[']) || text.len() > MAX_TEXT_BYTES.min(self.0) {
            return None;
        }
        self.0 -= text.len();
        // The parser stops at a depth of 128.
        serde_json::from_str(text).ok().or_else(|| python::read(text))
    }

    /// Returns a value, or the value that its text contains.
    pub(super) fn unpacked(&mut self, value: &Value) -> Option<Value> {
        match value {
            Value::String(text) => self.parse(text),
            Value::Object(_) | Value::Array(_) => Some(value.clone()),
            _ => None,
        }
    }
}

/// Returns the first of these members that is neither absent nor null.
pub(super) fn first<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| object.get(*name).filter(|it| !it.is_null()))
}

/// Returns the first of these members that is a non-empty text.
pub(super) fn first_text<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| object.get(*name)?.as_str().filter(|it| !it.trim().is_empty()))
}

/// Returns the list that conventions spread over keys such as `llm.tools.0.tool.json_schema`: for each number
/// in turn the values under `prefix.N` and `prefix.N.suffix`, by suffix.
pub(super) fn indexed(object: &Map<String, Value>, prefix: &str) -> Vec<Map<String, Value>> {
    let mut found: Vec<(usize, Map<String, Value>)> = Vec::new();
    for (key, value) in object {
        let Some(rest) = key.strip_prefix(prefix).and_then(|it| it.strip_prefix('.')) else { continue };
        let (number, suffix) = rest.split_once('.').unwrap_or((rest, ""));
        let Ok(number) = number.parse::<usize>() else { continue };
        let at = match found.iter().position(|(at, _)| *at == number) {
            Some(at) => at,
            None if found.len() == MAX_INDEXED_VALUES => continue,
            None => {
                found.push((number, Map::new()));
                found.len() - 1
            }
        };
        found[at].1.insert(suffix.to_owned(), value.clone());
    }
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, members)| members).collect()
}
