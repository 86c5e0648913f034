//! Formats the input and the output of a trace for reading.

use serde_json::Value;

use crate::output::cell::{self, Style, Tone};

/// Number of lines of a text that are shown without `--full`.
const SHOWN_LINES: usize = 12;
/// Indentation of texts in columns.
const INDENT_COLUMNS: usize = 12;

/// Returns the input and the output, each below its name; nothing if both are missing.
pub fn render(trace: &Value, style: &Style, width: Option<usize>, full: bool) -> String {
    let room = width.map_or(usize::MAX / 4, |width| width.saturating_sub(INDENT_COLUMNS)).max(20);
    let mut text = String::new();
    for name in ["input", "output"] {
        let Some(value) = trace.get(name).filter(|it| !it.is_null()) else { continue };
        let lines: Vec<String> = readable(value)
            .lines()
            .flat_map(|line| present::text::wrap(&cell::Cell::plain(line).text, room))
            .collect();
        let shown = if full { lines.len() } else { SHOWN_LINES };
        for (index, line) in lines.iter().take(shown).enumerate() {
            let label = if index == 0 { name } else { "" };
            text.push_str(&format!("  {label:<9} {line}\n"));
        }
        if let more @ 1.. = lines.len().saturating_sub(shown) {
            let note = format!("{} {more} more lines; --full shows them", style.glyphs.ellipsis);
            text.push_str(&format!("  {:<9} {}\n", "", style.paint(&note, Tone::Dim)));
        }
    }
    text
}

/// Formats a text: a conversation as its messages, any other JSON with one member a line.
fn readable(value: &Value) -> String {
    let text = cell::raw(Some(value));
    let parsed: Option<Value> = serde_json::from_str(&text).ok();
    match parsed {
        Some(Value::Array(messages)) => match messages.iter().map(message).collect::<Option<Vec<_>>>() {
            Some(lines) if !lines.is_empty() => lines.join("\n"),
            _ => serde_json::to_string_pretty(&messages).unwrap_or(text),
        },
        Some(object @ Value::Object(_)) => serde_json::to_string_pretty(&object).unwrap_or(text),
        _ => text,
    }
}

/// Formats a message that holds only a text, such as `user: Where is my order?`.
fn message(message: &Value) -> Option<String> {
    let members = message.as_object().filter(|it| it.len() == 2)?;
    Some(format!("{}: {}", members.get("role")?.as_str()?, members.get("content")?.as_str()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conversations_and_documents_are_formatted_for_reading() {
        let conversation =
            json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "a\nb"}]);
        assert_eq!(readable(&json!(conversation.to_string())), "user: Hi\nassistant: a\nb");
        assert_eq!(readable(&json!("{\"a\":1}")), "{\n  \"a\": 1\n}");
        assert_eq!(readable(&json!("plain [text")), "plain [text");
        assert_eq!(readable(&json!("12")), "12");
    }
}
