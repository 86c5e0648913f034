//! OpenLLMetry: `traceloop.*`, and the names of `gen_ai.*` from before the conventions defined input and
//! output messages.

use api::SpanType;

use super::{
    attributes::Attributes,
    indexed,
    keys::{Group, Key},
    text,
};

/// Returns the span type that a decorator or framework declares.
pub(super) fn kind(attributes: &Attributes) -> Option<SpanType> {
    Some(match attributes.str(Key::TraceloopKind)? {
        "tool" => SpanType::Tool,
        _ => SpanType::Other,
    })
}

/// Returns the span type for the old request type.
pub(super) fn request_kind(attributes: &Attributes) -> Option<SpanType> {
    Some(match attributes.str(Key::RequestType)? {
        "chat" | "completion" => SpanType::Llm,
        "rerank" => SpanType::Retrieval,
        _ => SpanType::Other,
    })
}

/// Assembles the prompts from their attributes.
pub(super) fn prompts(attributes: &mut Attributes) -> Option<String> {
    indexed::assemble(attributes.take_group(Group::Prompt))
}

/// Assembles the completions; plain text if they are one response of text.
pub(super) fn completions(attributes: &mut Attributes) -> Option<String> {
    let messages = indexed::assemble(attributes.take_group(Group::Completion))?;
    // No other attribute contains the finish reason.
    if text::is_empty_answer(&messages) && !messages.contains("\"finish_reason\"") {
        return None;
    }
    Some(text::plain_answer(&messages).unwrap_or(messages))
}

/// Returns the arguments of the decorated function, or the state of a graph's task.
pub(super) fn entity_input(attributes: &mut Attributes) -> Option<String> {
    attributes.take_first(&[Key::TraceloopInput, Key::TaskInput]).map(text::unquoted)
}

/// Returns the result of the decorated function, or the state after a graph's task.
pub(super) fn entity_output(attributes: &mut Attributes) -> Option<String> {
    attributes.take_first(&[Key::TraceloopOutput, Key::TaskOutput]).map(text::unquoted)
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn traceloop_kind_determines_span_type() {
        assert_eq!(kind(&attributes(&[("traceloop.span.kind", "tool")])), Some(SpanType::Tool));
        assert_eq!(kind(&attributes(&[("traceloop.span.kind", "workflow")])), Some(SpanType::Other));
        assert_eq!(request_kind(&attributes(&[("llm.request.type", "chat")])), Some(SpanType::Llm));
        assert_eq!(request_kind(&attributes(&[("llm.request.type", "embedding")])), Some(SpanType::Other));
    }

    #[test]
    fn traceloop_entities_are_unquoted() {
        let mut given = attributes(&[
            ("traceloop.entity.input", r#"{"args": ["Z\u00fcrich"]}"#),
            ("traceloop.entity.output", r#""Gr\u00fcezi""#),
        ]);
        assert_eq!(entity_input(&mut given).as_deref(), Some(r#"{"args": ["Zürich"]}"#));
        assert_eq!(entity_output(&mut given).as_deref(), Some("Grüezi"));
    }

    #[test]
    fn completion_of_text_is_plain_text() {
        let mut given = attributes(&[
            ("gen_ai.prompt.0.role", "user"),
            ("gen_ai.prompt.0.content", "Hi"),
            ("gen_ai.completion.0.role", "assistant"),
            ("gen_ai.completion.0.content", "Hello"),
            ("gen_ai.completion.0.finish_reason", "stop"),
        ]);
        assert_eq!(prompts(&mut given).as_deref(), Some(r#"[{"role":"user","content":"Hi"}]"#));
        assert_eq!(completions(&mut given).as_deref(), Some("Hello"));
    }
}
