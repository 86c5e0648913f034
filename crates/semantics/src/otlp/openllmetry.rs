//! OpenLLMetry: `traceloop.*`, and the `gen_ai.*` keys of before input and output messages.

use api::SpanType;

use super::{
    attributes::Attributes,
    indexed,
    keys::{Group, Key},
    text,
};

/// What a decorator or a framework says the span is.
pub(super) fn kind(attributes: &Attributes) -> Option<SpanType> {
    Some(match attributes.str(Key::TraceloopKind)? {
        "tool" => SpanType::Tool,
        _ => SpanType::Other,
    })
}

/// What the old request type says.
pub(super) fn request_kind(attributes: &Attributes) -> Option<SpanType> {
    Some(match attributes.str(Key::RequestType)? {
        "chat" | "completion" => SpanType::Llm,
        "rerank" => SpanType::Retrieval,
        _ => SpanType::Other,
    })
}

/// The prompts that went in, put together from their attributes.
pub(super) fn prompts(attributes: &mut Attributes) -> Option<String> {
    indexed::assemble(attributes.take_group(Group::Prompt))
}

/// The completions that came out; plain text where they are one answer of text.
pub(super) fn completions(attributes: &mut Attributes) -> Option<String> {
    let messages = indexed::assemble(attributes.take_group(Group::Completion))?;
    // No other attribute says how the call ended.
    if text::is_empty_answer(&messages) && !messages.contains("\"finish_reason\"") {
        return None;
    }
    Some(text::plain_answer(&messages).unwrap_or(messages))
}

/// Arguments of the decorated function, or the state of a graph's task.
pub(super) fn entity_input(attributes: &mut Attributes) -> Option<String> {
    attributes.take_first(&[Key::TraceloopInput, Key::TaskInput]).map(text::unquoted)
}

/// What the decorated function returned, or the state after a graph's task.
pub(super) fn entity_output(attributes: &mut Attributes) -> Option<String> {
    attributes.take_first(&[Key::TraceloopOutput, Key::TaskOutput]).map(text::unquoted)
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn kinds() {
        assert_eq!(kind(&attributes(&[("traceloop.span.kind", "tool")])), Some(SpanType::Tool));
        assert_eq!(kind(&attributes(&[("traceloop.span.kind", "workflow")])), Some(SpanType::Other));
        assert_eq!(request_kind(&attributes(&[("llm.request.type", "chat")])), Some(SpanType::Llm));
        assert_eq!(request_kind(&attributes(&[("llm.request.type", "embedding")])), Some(SpanType::Other));
    }

    #[test]
    fn entities_are_shown_without_their_json_quotes() {
        let mut given = attributes(&[
            ("traceloop.entity.input", r#"{"args": ["Z\u00fcrich"]}"#),
            ("traceloop.entity.output", r#""Gr\u00fcezi""#),
        ]);
        assert_eq!(entity_input(&mut given).as_deref(), Some(r#"{"args": ["Zürich"]}"#));
        assert_eq!(entity_output(&mut given).as_deref(), Some("Grüezi"));
    }

    #[test]
    fn completions_of_text_are_plain() {
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
