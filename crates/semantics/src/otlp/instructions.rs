//! System instructions that are sent separately from the messages (`gen_ai.system_instructions`).
//!
//! They are part of the input, so they are put before it as a system message. The instructions and the
//! input may each be a list of parts or messages, a single part or message, or plain text.

use api::SpanType;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{attributes::Attributes, events::EventContents, keys::Key, text};

/// Puts the span's system instructions before its input, unless the input's own system messages repeat
/// them. Spans without input other than model calls keep them as an attribute.
pub(super) fn join(
    attributes: &mut Attributes,
    contents: &mut EventContents,
    span_type: &SpanType,
    input: Option<String>,
) -> Option<String> {
    if *span_type == SpanType::Tool || (input.is_none() && *span_type != SpanType::Llm) {
        return input;
    }
    let sent = attributes.take_text(Key::SystemInstructions).or_else(|| contents.instructions.take());
    let Some(sent) = sent.filter(|it| !text::is_placeholder(it)) else { return input };
    let messages = system_messages(&text::readable(sent));
    if messages.is_empty() {
        return input;
    }
    let Some(input) = input else { return Some(format!("[{messages}]")) };
    Some(match InputShape::of(&input) {
        InputShape::List(list) if repeats(&list, &messages) => input,
        InputShape::List(list) if list.is_empty() => format!("[{messages}]"),
        InputShape::List(_) => format!("[{messages},{}", &input.trim_start()[1..]),
        InputShape::Message => format!("[{messages},{input}]"),
        InputShape::Other => {
            let mut joined = format!("[{messages},{{\"role\":\"user\",\"content\":");
            text::push_json_str(&mut joined, &input);
            joined.push_str("}]");
            joined
        }
    })
}

/// The form of an input.
enum InputShape<'a> {
    /// A JSON list, its items unparsed.
    List(Vec<&'a RawValue>),
    /// One message.
    Message,
    /// Plain text, or JSON that is not a message.
    Other,
}

impl<'a> InputShape<'a> {
    fn of(input: &'a str) -> Self {
        match input.trim_start().as_bytes().first() {
            Some(b'[') => serde_json::from_str(input).map_or(Self::Other, Self::List),
            Some(b'{') if is_message(input) => Self::Message,
            _ => Self::Other,
        }
    }
}

#[derive(Deserialize)]
struct MessageRole<'a> {
    #[serde(borrow)]
    role: std::borrow::Cow<'a, str>,
}

fn is_message(json: &str) -> bool {
    serde_json::from_str::<MessageRole<'_>>(json).is_ok()
}

/// Returns the instructions as messages, separated by commas; empty if they have no text.
fn system_messages(sent: &str) -> String {
    match serde_json::from_str::<Value>(sent) {
        Ok(Value::Array(items)) if items.is_empty() => String::new(),
        // The instructions are messages already: the list without its brackets.
        Ok(Value::Array(items)) if items.iter().all(|it| it.get("role").is_some()) => {
            let sent = sent.trim();
            sent[1..sent.len() - 1].trim().to_owned()
        }
        Ok(Value::Array(items)) if items.iter().all(Value::is_string) => {
            let lines: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            message_of_text(&lines.join("\n"))
        }
        Ok(Value::Array(_)) => format!("{{\"role\":\"system\",\"parts\":{}}}", sent.trim()),
        Ok(Value::Object(object)) if object.is_empty() => String::new(),
        Ok(Value::Object(object)) if object.contains_key("role") => sent.trim().to_owned(),
        Ok(Value::Object(_)) => format!("{{\"role\":\"system\",\"parts\":[{}]}}", sent.trim()),
        Ok(Value::String(inner)) => message_of_text(&inner),
        // Plain instructions may happen to be a JSON number or word.
        Ok(_) | Err(_) => message_of_text(sent),
    }
}

fn message_of_text(text: &str) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    let mut message = "{\"role\":\"system\",\"content\":".to_owned();
    text::push_json_str(&mut message, text);
    message.push('}');
    message
}

/// Returns whether the leading system messages of the list contain every text of the instructions.
fn repeats(list: &[&RawValue], instructions: &str) -> bool {
    let is_system = |item: &&&RawValue| {
        serde_json::from_str::<MessageRole<'_>>(item.get())
            .is_ok_and(|it| matches!(it.role.as_ref(), "system" | "developer"))
    };
    let leading: Vec<Value> =
        list.iter().take_while(is_system).filter_map(|it| serde_json::from_str(it.get()).ok()).collect();
    if leading.is_empty() {
        return false;
    }
    let mut said = Vec::new();
    leading.iter().for_each(|it| texts(it, &mut said));
    let said = said.join("\n");
    let Ok(instructions) = serde_json::from_str::<Value>(&format!("[{instructions}]")) else { return false };
    let mut wanted = Vec::new();
    texts(&instructions, &mut wanted);
    !wanted.is_empty() && wanted.iter().all(|it| said.contains(it.trim()))
}

/// Collects the texts of messages and parts. The JSON parser bounds the recursion.
fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|it| texts(it, found)),
        Value::Object(members) => {
            for name in ["parts", "content", "contents", "text"] {
                match members.get(name) {
                    Some(Value::String(text)) => found.push(text),
                    Some(inner) => texts(inner, found),
                    None => {}
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    const PARTS: &str = r#"[{"type":"text","content":"Be terse"}]"#;
    const USER: &str = r#"{"role":"user","parts":[{"type":"text","content":"Hi"}]}"#;

    fn check(instructions: &str, input: Option<&str>, expected: Option<&str>) {
        let mut given = attributes(&[("gen_ai.system_instructions", instructions)]);
        let input = input.map(str::to_owned);
        let joined = join(&mut given, &mut EventContents::default(), &SpanType::Llm, input);
        assert_eq!(joined.as_deref(), expected, "{instructions}");
        if let Some(joined) = joined.filter(|it| it.starts_with('[')) {
            assert!(serde_json::from_str::<Vec<Value>>(&joined).is_ok(), "{joined}");
        }
    }

    #[test]
    fn instructions_of_every_form_lead_the_messages() {
        let list = format!("[{USER}]");
        let in_parts = format!(r#"[{{"role":"system","parts":{PARTS}}},{USER}]"#);
        let in_text = format!(r#"[{{"role":"system","content":"Be terse"}},{USER}]"#);
        check(PARTS, Some(&list), Some(&in_parts));
        check(r#"{"type":"text","content":"Be terse"}"#, Some(&list), Some(&in_parts));
        check("Be terse", Some(&list), Some(&in_text));
        check("\"Be terse\"", Some(&list), Some(&in_text));
        check(r#"["Be terse"]"#, Some(&list), Some(&in_text));
        check(r#"[{"role":"system","content":"Be terse"}]"#, Some(&list), Some(&in_text));
        check(r#"{"role":"system","content":"Be terse"}"#, Some(&list), Some(&in_text));
    }

    #[test]
    fn instructions_join_inputs_of_every_form() {
        let system = r#"{"role":"system","content":"Be terse"}"#;
        check("Be terse", None, Some(&format!("[{system}]")));
        check("Be terse", Some("[]"), Some(&format!("[{system}]")));
        check("Be terse", Some(USER), Some(&format!("[{system},{USER}]")));
        check(
            "Be terse",
            Some("say \"hi\""),
            Some(&format!(r#"[{system},{{"role":"user","content":"say \"hi\""}}]"#)),
        );
        check(
            "Be terse",
            Some("[not json"),
            Some(&format!(r#"[{system},{{"role":"user","content":"[not json"}}]"#)),
        );
    }

    #[test]
    fn repeated_instructions_are_stored_once() {
        let repeated = format!(r#"[{{"role": "system", "parts": {PARTS}}}, {USER}]"#);
        check(PARTS, Some(&repeated), Some(&repeated));
        let other = format!(r#"[{{"role":"system","content":"You are kind"}},{USER}]"#);
        let both = format!(r#"[{{"role":"system","parts":{PARTS}}},{}"#, &other[1..]);
        check(PARTS, Some(&other), Some(&both));
    }

    #[test]
    fn blank_instructions_are_ignored() {
        for nothing in ["", "[]", "{}", "null", "\"\"", "  "] {
            check(nothing, Some("Hi"), Some("Hi"));
            check(nothing, None, None);
        }
    }

    #[test]
    fn instructions_of_an_agent_without_input_stay_an_attribute() {
        let mut given = attributes(&[("gen_ai.system_instructions", PARTS)]);
        assert_eq!(join(&mut given, &mut EventContents::default(), &SpanType::Other, None), None);
        assert!(given.has(Key::SystemInstructions));
    }
}
