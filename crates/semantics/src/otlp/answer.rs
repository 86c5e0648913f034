//! The answer of a model: its plain text, and whether it has any content.
//!
//! An answer is shown as plain text only if nothing is lost: a message with content other than its text and
//! its envelope (a tool call, audio, a citation) stays JSON.

use std::borrow::Cow;

use super::{raw::RawObject, text::clean};

/// Members that describe a message and are not part of its content.
const ENVELOPE_MEMBERS: &[&str] = &[
    "role",
    "finish_reason",
    "index",
    "id",
    "type",
    "status",
    "model",
    "object",
    "name",
    "usage",
    "stop_reason",
    "stop_sequence",
];
/// Members in which the conventions put the content of a message.
const CONTENT_MEMBERS: &[&str] = &["parts", "contents", "content"];
/// A message without content is never longer than this.
const MAX_EMPTY_BYTES: usize = 1_024;

/// Returns the model's answer as plain text if the JSON is one message with nothing but text.
///
/// Understands the shapes of OpenAI, Anthropic and the GenAI conventions, as a list of one message or the
/// message itself. A text that a message contains twice, in `content` and in `contents`, is returned once.
pub(super) fn plain_answer(json: &str) -> Option<String> {
    let message = match json.as_bytes().first()? {
        b'[' => {
            let [message] = serde_json::from_str::<[RawObject<'_>; 1]>(json).ok()?;
            message
        }
        b'{' => serde_json::from_str::<RawObject<'_>>(json).ok()?,
        _ => return None,
    };
    // An object without a role is not a message, even if it has content.
    message.get("role")?;
    let mut text: Option<String> = None;
    for (name, value) in content_members(&message) {
        if !CONTENT_MEMBERS.contains(&name) {
            return None;
        }
        let part_text = plain_content(value)?;
        match &text {
            None => text = Some(part_text),
            Some(before) if *before == part_text => {}
            Some(_) => return None,
        }
    }
    text.filter(|it| !it.is_empty()).map(clean)
}

/// Returns whether a list of messages has neither text nor calls, only roles and envelopes.
pub(super) fn is_empty_answer(json: &str) -> bool {
    json.len() < MAX_EMPTY_BYTES
        && serde_json::from_str::<Vec<RawObject<'_>>>(json).is_ok_and(|messages| {
            !messages.is_empty()
                && messages.iter().all(|message| {
                    message.get("role").is_some()
                        && message.get("type").is_none_or(|it| it == "\"message\"")
                        && content_members(message)
                            .all(|(name, value)| CONTENT_MEMBERS.contains(&name) && is_empty_content(value))
                })
        })
}

/// Returns the text of a JSON list of parts that are all text.
pub(super) fn plain_parts(json: &str) -> Option<String> {
    joined(&serde_json::from_str::<Vec<RawObject<'_>>>(json).ok()?).map(clean)
}

/// Returns the text of a message's content: a string, or a list of parts that are all text.
fn plain_content(json: &str) -> Option<String> {
    match json.as_bytes().first()? {
        b'"' => serde_json::from_str(json).ok(),
        b'[' => joined(&serde_json::from_str::<Vec<RawObject<'_>>>(json).ok()?),
        _ => None,
    }
}

fn is_empty_content(json: &str) -> bool {
    plain_content(json).is_some_and(|it| it.is_empty())
}

fn joined(parts: &[RawObject<'_>]) -> Option<String> {
    let mut text = String::new();
    for part in parts {
        let kind: Option<Cow<'_, str>> = part.get("type").map(serde_json::from_str).transpose().ok()?;
        if !matches!(kind.as_deref(), Some("text" | "output_text") | None) {
            return None;
        }
        let others = |name: &str| !matches!(name, "type" | "text" | "content" | "id");
        if content_members(part).any(|(name, _)| others(name)) {
            return None;
        }
        let part_text: String = serde_json::from_str(part.first(&["content", "text"])?).ok()?;
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&part_text);
    }
    Some(text)
}

/// Returns the members that have a value and are not part of the envelope.
fn content_members<'o, 'a>(object: &'o RawObject<'a>) -> impl Iterator<Item = (&'o str, &'a str)> {
    object.members().filter(|(name, value)| !ENVELOPE_MEMBERS.contains(name) && !is_blank(value))
}

fn is_blank(json: &str) -> bool {
    matches!(json, "null" | "[]" | "{}" | "\"\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_answer_of_one_text_message_is_the_text() {
        let cases = [
            (
                r#"[{"role":"assistant","parts":[{"type":"text","content":"Hi"}],"finish_reason":"stop"}]"#,
                Some("Hi"),
            ),
            (r#"[{"role":"assistant","content":"Hi"}]"#, Some("Hi")),
            (r#"{"role":"assistant","content":"Hi","tool_calls":null}"#, Some("Hi")),
            (
                r#"{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
                Some("a\nb"),
            ),
            (r#"[{"role":"assistant","contents":[{"type":"text","text":"Hi"}]}]"#, Some("Hi")),
            (
                r#"{"role":"assistant","content":"Hi","refusal":null,"annotations":[],"audio":null}"#,
                Some("Hi"),
            ),
            (r#"[{"role":"assistant","parts":[{"type":"tool_call","name":"f"}]}]"#, None),
            (r#"{"role":"assistant","content":"Hi","tool_calls":[{"id":"1"}]}"#, None),
            (r#"[{"role":"a","content":"1"},{"role":"b","content":"2"}]"#, None),
            (r#"{"content":"no role"}"#, None),
            (r#"[{"role":"assistant","parts":[]}]"#, None),
            ("plain", None),
            ("[", None),
        ];
        for (given, expected) in cases {
            assert_eq!(plain_answer(given).as_deref(), expected, "{given}");
        }
    }

    #[test]
    fn plain_answer_of_text_sent_twice_has_it_once() {
        let message = |content: &str| {
            format!(
                r#"[{{"role":"assistant","contents":[{{"type":"text","text":"It is sunny."}}],"content":"{content}"}}]"#
            )
        };
        assert_eq!(plain_answer(&message("It is sunny.")).as_deref(), Some("It is sunny."));
        assert_eq!(plain_answer(&message("")).as_deref(), Some("It is sunny."));
        assert_eq!(plain_answer(&message("It rains.")), None, "neither of two texts is dropped");
    }

    #[test]
    fn plain_answer_that_would_lose_something_stays_json() {
        for given in [
            r#"{"role":"assistant","content":"Hi","audio":{"id":"audio_1"}}"#,
            r#"{"role":"assistant","content":"Hi","refusal":"no"}"#,
            r#"{"role":"assistant","content":"Hi","reasoning_content":"hm"}"#,
            r#"[{"role":"assistant","parts":[{"type":"text","content":"Hi","annotations":[{"url":"u"}]}]}]"#,
        ] {
            assert_eq!(plain_answer(given), None, "{given}");
        }
    }

    #[test]
    fn empty_answer_has_nothing_but_an_envelope() {
        for given in [
            r#"[{"role": "assistant", "parts": [], "finish_reason": "tool_calls"}]"#,
            r#"[{"role":"assistant"}]"#,
            r#"[{"role":"assistant","type":"message","content":null,"tool_calls":[]}]"#,
            r#"[{"role":"assistant","parts":[{"type":"text","content":""}]},{"role":"assistant","content":""}]"#,
        ] {
            assert!(is_empty_answer(given), "{given}");
        }
    }

    #[test]
    fn empty_answer_is_never_one_that_holds_a_value() {
        for given in [
            r#"[{"role":"assistant","content":"Hi"}]"#,
            r#"[{"type":"function_call","name":"f","arguments":"{}"}]"#,
            r#"[{"role":"assistant","audio":{"id":"audio_1"}}]"#,
            r#"[{"role":"assistant","refusal":"no"}]"#,
            r#"[{"role":"assistant","parts":[{"type":"tool_call","name":"f"}]}]"#,
            r#"[{"city":"Zürich","temp_c":21}]"#,
            r#"[{"id":"A-1042"}]"#,
            r#"[{}]"#,
            "[]",
            "plain",
        ] {
            assert!(!is_empty_answer(given), "{given}");
        }
    }
}
