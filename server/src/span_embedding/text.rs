//! The text by which a span is found: its name, what went in, what came out, why it failed. Pure.
//!
//! A conversation is taken for what it says and not for how it is written down. What stands in
//! front of every conversation of an application, its instructions, would make all of them alike,
//! and the newest of what went in says more than the oldest.

use std::fmt::Write;

use entities::span;
use serde_json::{Map, Value};
use store::traces::SpanTexts;

/// Characters of what went in, and of what came out. Together some thousand tokens of English,
/// and fewer than the 8,191 that usual models take, of any writing.
const MOST: usize = 2_000;

/// Longest text that is looked into for being JSON, bytes.
const LONGEST_JSON: usize = 32 * 1024;

/// Deepest nesting that is followed.
const DEEPEST: usize = 16;

/// What instructs a model and is no part of what is asked.
const INSTRUCTIONS: [&str; 2] = ["system", "developer"];

/// Members that say how something is written down, not what.
const FORM: [&str; 8] =
    ["role", "type", "id", "finish_reason", "tool_call_id", "call_id", "index", "refusal"];

/// Members whose names say nothing of their values.
const PLAIN: [&str; 12] = [
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

/// The text of a span; none if it has nothing but a name.
pub fn text(span: &span::Model, texts: &SpanTexts) -> Option<String> {
    let input = texts.input.as_deref().map(|it| end(&said(it, true)));
    let output = texts.output.as_deref().map(|it| start(&said(it, false)));
    let error = span.error.as_deref().map(start);
    let parts = [input, output, error];
    let mut parts = parts.into_iter().flatten().filter(|it| !it.is_empty()).peekable();
    parts.peek()?;
    let mut text = span.name.clone();
    for part in parts {
        text.push('\n');
        text.push_str(&part);
    }
    Some(text)
}

/// A shorter form of a text that was refused; none if it is short already.
pub fn shorter(text: &str) -> Option<String> {
    const SHORT: usize = 200;
    let characters = text.chars().count();
    (characters > SHORT).then(|| text.chars().take((characters / 4).max(SHORT)).collect())
}

/// What a text says: JSON without its form, anything else as it stands.
fn said(text: &str, is_input: bool) -> String {
    let text = text.trim();
    let json = text.len() <= LONGEST_JSON && text.starts_with(['[', '{']);
    let Some(value) = json.then(|| serde_json::from_str(text).ok()).flatten() else { return text.to_owned() };
    let mut said = String::new();
    match &value {
        Value::Array(messages) if is_input && messages.iter().any(|it| !instructs(it)) => {
            messages.iter().filter(|it| !instructs(it)).for_each(|it| say(it, &mut said, DEEPEST));
        }
        other => say(other, &mut said, DEEPEST),
    }
    said
}

fn instructs(message: &Value) -> bool {
    message["role"].as_str().is_some_and(|it| INSTRUCTIONS.contains(&it))
}

fn say(value: &Value, said: &mut String, depth: usize) {
    match value {
        Value::String(text) => line(said, text),
        Value::Array(list) if depth > 0 => list.iter().for_each(|it| say(it, said, depth - 1)),
        Value::Object(members) if depth > 0 => say_members(members, said, depth),
        // Writing to a String can't fail.
        Value::Number(number) => _ = writeln!(said, "{number}"),
        _ => {}
    }
}

fn say_members(members: &Map<String, Value>, said: &mut String, depth: usize) {
    for (name, value) in members {
        if FORM.contains(&name.as_str()) {
            continue;
        }
        if !PLAIN.contains(&name.as_str()) && !value.is_null() {
            said.push_str(name);
            said.push_str(": ");
        }
        say(value, said, depth - 1);
    }
}

fn line(said: &mut String, text: &str) {
    said.push_str(text.trim());
    said.push('\n');
}

/// The first characters of a text.
fn start(text: &str) -> String {
    text.trim().chars().take(MOST).collect()
}

/// The last characters of a text.
fn end(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth_back(MOST - 1) {
        Some((from, _)) => text[from..].to_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(text: &str) -> String {
        end(&said(text, true))
    }

    #[test]
    fn conversations_are_what_they_say() {
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
    fn the_end_of_what_went_in_and_the_start_of_what_came_out() {
        let long = format!("{}é", "ü".repeat(MOST));
        let (tail, head) = (end(&long), start(&long));
        assert_eq!((tail.chars().count(), head.chars().count()), (MOST, MOST));
        assert!(tail.ends_with('é') && !head.ends_with('é'));
        assert_eq!(end(&"x".repeat(MOST)).len(), MOST);
    }

    #[test]
    fn deep_nesting_ends_somewhere() {
        let deep = format!("{}\"x\"{}", "[".repeat(60), "]".repeat(60));
        assert_eq!(input(&deep), "");
        let endless = format!("{}{}", "[".repeat(9_000), "]".repeat(9_000));
        assert_eq!(input(&endless).chars().count(), MOST);
    }

    #[test]
    fn refused_texts_become_shorter_until_they_are_short() {
        assert_eq!(shorter(&"é".repeat(1_000)).map(|it| it.chars().count()), Some(250));
        assert_eq!(shorter(&"é".repeat(200)), None);
    }
}
