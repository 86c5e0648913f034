//! Builds the text that is embedded for a span: name, input, output, error. Pure.
//!
//! Of a conversation, only the messages count, not their encoding. Instructions, which precede every
//! conversation of an application, would make all of them similar, so they are omitted; the end of the
//! input is more relevant than its beginning.

use std::{borrow::Cow, fmt::Write};

use store::{traces::SpanTexts, vectors::SpanToEmbed};

use super::borrowed_json::BorrowedJson;

/// Maximum length in characters of the input and of the output. Together about a thousand tokens of
/// English, and in any script fewer than the 8,191 tokens that common models accept.
const MAX_TEXT_CHARS: usize = 2_000;

/// Maximum length in bytes of a text that is parsed as JSON.
const MAX_JSON_BYTES: usize = 32 * 1024;

/// Maximum depth of JSON.
const MAX_DEPTH: usize = 16;

/// Roles of instructions.
const INSTRUCTION_ROLES: [&str; 2] = ["system", "developer"];

/// JSON members that describe the encoding of a message.
const FORMAT_MEMBERS: [&str; 8] =
    ["role", "type", "id", "finish_reason", "tool_call_id", "call_id", "index", "refusal"];

/// JSON members whose names are omitted.
const CONTENT_MEMBERS: [&str; 12] = [
    "content",
    "contents",
    "text",
    "parts",
    "message",
    "messages",
    "input",
    "output",
    "value",
    "function",
    "tool_calls",
    "name",
];

/// Returns the text of a span; `None` if it has only a name.
pub fn text(span: &SpanToEmbed, texts: &SpanTexts) -> Option<String> {
    let input = texts.input.as_deref().map(|it| contents(it, true));
    let output = texts.output.as_deref().map(|it| contents(it, false));
    let input = input.as_deref().map(last_chars);
    let output = output.as_deref().map(first_chars);
    let error = span.error.as_deref().map(first_chars);
    let parts = [input, output, error];
    let mut parts = parts.into_iter().flatten().filter(|it| !it.is_empty()).peekable();
    parts.peek()?;
    let mut text = span.name.clone();
    for part in parts {
        text.push('\n');
        text.push_str(part);
    }
    Some(text)
}

/// Returns a shorter form of a rejected text; `None` if it is short already.
pub fn shorter(text: &str) -> Option<String> {
    const SHORT_TEXT_CHARS: usize = 200;
    let characters = text.chars().count();
    (characters > SHORT_TEXT_CHARS)
        .then(|| text.chars().take((characters / 4).max(SHORT_TEXT_CHARS)).collect())
}

/// Returns the contents of a JSON text; other texts are returned unchanged.
fn contents(text: &str, is_input: bool) -> Cow<'_, str> {
    let text = text.trim();
    let json = text.len() <= MAX_JSON_BYTES && text.starts_with(['[', '{']);
    let Some(value) = json.then(|| serde_json::from_str(text).ok()).flatten() else { return text.into() };
    let mut contents = String::new();
    match &value {
        BorrowedJson::Array(messages) if is_input && messages.iter().any(|it| !is_instruction(it)) => {
            messages
                .iter()
                .filter(|it| !is_instruction(it))
                .for_each(|it| append_contents(it, &mut contents, MAX_DEPTH));
        }
        other => append_contents(other, &mut contents, MAX_DEPTH),
    }
    contents.into()
}

fn is_instruction(message: &BorrowedJson<'_>) -> bool {
    message.text_member("role").is_some_and(|it| INSTRUCTION_ROLES.contains(&it))
}

fn append_contents(value: &BorrowedJson<'_>, contents: &mut String, depth: usize) {
    match value {
        BorrowedJson::Text(text) => append_line(contents, text),
        BorrowedJson::Array(list) if depth > 0 => {
            list.iter().for_each(|it| append_contents(it, contents, depth - 1))
        }
        BorrowedJson::Object(members) if depth > 0 => append_members(members, contents, depth),
        // Writing to a String cannot fail.
        BorrowedJson::Number(number) => _ = writeln!(contents, "{number}"),
        _ => {}
    }
}

fn append_members(members: &[(Cow<'_, str>, BorrowedJson<'_>)], contents: &mut String, depth: usize) {
    for (name, value) in members {
        if FORMAT_MEMBERS.contains(&name.as_ref()) {
            continue;
        }
        if !CONTENT_MEMBERS.contains(&name.as_ref()) && *value != BorrowedJson::Null {
            contents.push_str(name);
            contents.push_str(": ");
        }
        append_contents(value, contents, depth - 1);
    }
}

fn append_line(contents: &mut String, text: &str) {
    contents.push_str(text.trim());
    contents.push('\n');
}

/// Returns the first characters of a text.
fn first_chars(text: &str) -> &str {
    let text = text.trim();
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Returns the last characters of a text.
fn last_chars(text: &str) -> &str {
    let text = text.trim();
    match text.char_indices().nth_back(MAX_TEXT_CHARS - 1) {
        Some((from, _)) => &text[from..],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(text: &str) -> String {
        last_chars(&contents(text, true)).to_owned()
    }

    #[test]
    fn conversation_is_embedded_without_its_encoding() {
        let chat = r#"[{"role":"system","content":"You are terse."},{"role":"user","content":"Where is my parcel?"}]"#;
        assert_eq!(input(chat), "Where is my parcel?");
        let parts = r#"[{"role":"user","parts":[{"type":"text","content":"Where"},{"type":"text","content":"is it?"}]}]"#;
        assert_eq!(input(parts), "Where\nis it?");
        let only = r#"[{"role":"system","content":"You are terse."}]"#;
        assert_eq!(input(only), "You are terse.");
        let tool = r#"{"city":"Paris","days":3,"none":null,"deep":{"unit":"C"}}"#;
        assert_eq!(input(tool), "city: Paris\ndays: 3\ndeep: unit: C");
        for plain in ["Where is my parcel?", "[not json", "{", "7", "null"] {
            assert_eq!(input(plain), plain);
        }
    }

    #[test]
    fn span_text_has_end_of_input_and_start_of_output() {
        let long = format!("{}é", "ü".repeat(MAX_TEXT_CHARS));
        let (tail, head) = (last_chars(&long), first_chars(&long));
        assert_eq!((tail.chars().count(), head.chars().count()), (MAX_TEXT_CHARS, MAX_TEXT_CHARS));
        assert!(tail.ends_with('é') && !head.ends_with('é'));
        assert_eq!(last_chars(&"x".repeat(MAX_TEXT_CHARS)).len(), MAX_TEXT_CHARS);
    }

    #[test]
    fn deeply_nested_json_text_is_bounded() {
        let deep = format!("{}\"x\"{}", "[".repeat(60), "]".repeat(60));
        assert_eq!(input(&deep), "");
        let endless = format!("{}{}", "[".repeat(9_000), "]".repeat(9_000));
        assert_eq!(input(&endless).chars().count(), MAX_TEXT_CHARS);
    }

    #[test]
    fn rejected_text_is_shortened_until_it_is_short() {
        assert_eq!(shorter(&"é".repeat(1_000)).map(|it| it.chars().count()), Some(250));
        assert_eq!(shorter(&"é".repeat(200)), None);
    }
}
