//! Arguments and results of functions, as tracing frameworks record them.
//!
//! LangSmith and MLflow record the arguments of a function as a JSON object, and its result as JSON.
//! For display, a single argument is shown without its name, messages in one form, and a model call as
//! its conversation.

use api::SpanType;

use super::{
    messages::{self, plain_text},
    provider::{self, Request},
    raw::RawObject,
    text, vectors,
};

/// Names of a single argument that carry no information.
const INPUT_NAMES: &[&str] = &["input", "inputs", "query", "question", "prompt", "text"];
/// Names of a single result that carry no information.
const OUTPUT_NAMES: &[&str] = &["output", "outputs", "documents", "result"];
/// Members that LangGraph adds to a state of messages.
const LANGGRAPH_MEMBERS: &[&str] = &["remaining_steps", "is_last_step"];

/// Returns the arguments of a function in readable form.
pub(super) fn input(json: String, span_type: &SpanType) -> Option<Request> {
    if *span_type == SpanType::Llm
        && let Some(request) = provider::request(&json)
    {
        return Some(request);
    }
    let names = match span_type {
        SpanType::Tool => &INPUT_NAMES[..2],
        _ => INPUT_NAMES,
    };
    Some(Request { input: shown(json, names, "user")?, parameters: None })
}

/// Returns the result of a function in readable form.
pub(super) fn output(json: String, span_type: &SpanType) -> Option<String> {
    if *span_type == SpanType::Llm
        && let Some(answer) = provider::answer(&json)
    {
        return (!provider::is_empty(&answer)).then_some(answer);
    }
    let output = shown(json, OUTPUT_NAMES, "assistant")?;
    if *span_type == SpanType::Tool {
        return Some(messages::of_tool(&output).unwrap_or(output));
    }
    Some(text::plain_answer(&output).unwrap_or(output)).filter(|it| !provider::is_empty(it))
}

/// Formats a value for readers: a text without quotes, messages in one form, anything else as JSON.
fn shown(json: String, names: &[&str], role: &str) -> Option<String> {
    let lone = lone_member(&json, names);
    let value = lone.unwrap_or(&json);
    if text::is_placeholder(value) || value == "\"\"" {
        return None;
    }
    let state = RawObject::parse(value)
        .filter(|it| it.members().all(|(name, _)| name == "messages" || LANGGRAPH_MEMBERS.contains(&name)));
    let value = state.as_ref().and_then(|it| it.get("messages")).unwrap_or(value);
    if messages::are_messages(value) {
        return messages::rewritten(value, role);
    }
    if value.starts_with('"')
        && let Some(text) = plain_text(value)
    {
        return Some(text);
    }
    let whole = value.len() == json.len();
    Some(vectors::shortened(text::readable(if whole { json } else { value.to_owned() })))
}

/// Returns the value of an object's only member, if it has one of these names.
fn lone_member<'a>(json: &'a str, names: &[&str]) -> Option<&'a str> {
    let object: RawObject<'a> = RawObject::parse(json)?;
    let mut members = object.all();
    let (_, value) = members.next().filter(|(name, _)| names.contains(name))?;
    members.all(|(_, other)| other == "null").then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_argument_is_shown_without_its_name() {
        for (sent, expected) in [
            (r#"{"query":"Z\u00fcrich?"}"#, "Zürich?"),
            (r#"{"input":{"a":1}}"#, r#"{"a":1}"#),
            (r#"{"city":"Zürich"}"#, r#"{"city":"Zürich"}"#),
            (
                r#"{"messages":[["user","Hi"]]}"#,
                r#"[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]"#,
            ),
            (
                r#"{"messages":[{"content":"Hi","type":"human"}],"remaining_steps":3}"#,
                r#"[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]"#,
            ),
            (
                r#"{"messages":[{"content":"Hi","type":"human"}],"city":"x"}"#,
                r#"{"messages":[{"content":"Hi","type":"human"}],"city":"x"}"#,
            ),
            ("plain", "plain"),
        ] {
            let read = input(sent.to_owned(), &SpanType::Other).map(|it| it.input);
            assert_eq!(read.as_deref(), Some(expected), "{sent}");
        }
        let tool = input(r#"{"query":"x"}"#.to_owned(), &SpanType::Tool).map(|it| it.input);
        assert_eq!(tool.as_deref(), Some(r#"{"query":"x"}"#), "the arguments of a tool keep their names");
    }

    #[test]
    fn text_result_is_shown_as_text() {
        let tool = r#"{"output":{"content":"sunny","type":"tool","name":"f","tool_call_id":"c"}}"#;
        for (kind, sent, expected) in [
            (SpanType::Tool, tool, Some("sunny")),
            (SpanType::Tool, r#"{"output":"sunny"}"#, Some("sunny")),
            (SpanType::Tool, r#"{"w":"sunny"}"#, Some(r#"{"w":"sunny"}"#)),
            (
                SpanType::Retrieval,
                r#"{"documents":[{"page_content":"a"}]}"#,
                Some(r#"[{"page_content":"a"}]"#),
            ),
            (SpanType::Other, r#"{"output":{"content":"Hi","type":"ai"}}"#, Some("Hi")),
            (SpanType::Other, r#"{"output":null}"#, None),
            (
                SpanType::Llm,
                r#"{"generations":[[{"text":"","message":{"lc":1,"id":["AIMessage"],"kwargs":{"content":"","response_metadata":{"body":{}},"type":"ai"}}}]]}"#,
                None,
            ),
            (SpanType::Llm, r#"{"output":"Hi"}"#, Some("Hi")),
        ] {
            assert_eq!(output(sent.to_owned(), &kind).as_deref(), expected, "{sent}");
        }
    }
}
