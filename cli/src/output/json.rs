//! JSON text without characters that act on a terminal.

use std::fmt::Write as _;

use api::text::is_control;
use serde::Serialize;

/// Formats a value as JSON with a trailing line break, indented if `pretty`.
pub fn text(value: &impl Serialize, pretty: bool) -> serde_json::Result<String> {
    let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) }?;
    Ok(escape(&text) + "\n")
}

/// Escapes the control characters that JSON permits unescaped in strings (DEL, C1, bidirectional). They
/// cannot occur outside strings, so the meaning stays the same.
pub fn escape(json: &str) -> String {
    let escaped = |c: char| is_control(c) && c >= '\u{7f}';
    if !json.contains(escaped) {
        return json.to_owned();
    }
    let mut text = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if escaped(c) {
            // All of them are below U+FFFF. Writing to a String cannot fail.
            _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[test]
    fn json_escapes_controls_and_keeps_the_value() {
        let value = json!({ "a": "\u{1b}[31m\u{9b}\u{202e}\u{7f}ä" });
        let text = super::text(&value, false).unwrap();
        assert_eq!(text, "{\"a\":\"\\u001b[31m\\u009b\\u202e\\u007fä\"}\n");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
