//! Vercel AI SDK up to version 6: `ai.*`. Version 7 and later send [`super::genai`].

use api::SpanType;

use super::{attributes::Attributes, keys::Key, text};

/// Returns the span type for the operation. Model calls are the inner `do…` spans; outer spans wrap
/// steps and tools.
pub(super) fn kind(attributes: &Attributes) -> Option<SpanType> {
    let operation = attributes.str(Key::AiOperation)?;
    Some(if operation.starts_with("ai.embed") {
        SpanType::Other
    } else if operation.ends_with(".doGenerate") || operation.ends_with(".doStream") {
        SpanType::Llm
    } else if operation == "ai.toolCall" {
        SpanType::Tool
    } else if operation.starts_with("ai.rerank") {
        SpanType::Retrieval
    } else {
        SpanType::Other
    })
}

/// Returns whether the provider's token counts exclude cached tokens.
pub(super) fn excludes_cached(attributes: &Attributes) -> bool {
    attributes.has(Key::AiOperation)
        && attributes.str(Key::AiProvider).is_some_and(|it| it.contains("anthropic"))
}

/// Returns the prompt, as messages on the inner spans.
pub(super) fn input(attributes: &mut Attributes) -> Option<String> {
    if let Some(messages) = attributes.take_text(Key::AiPromptMessages) {
        return Some(text::readable(messages));
    }
    if let Some(prompt) = attributes.take_text(Key::AiPrompt) {
        return Some(text::readable(prompt));
    }
    attributes.take_first(&[Key::AiValue, Key::AiValues]).map(text::unquoted)
}

/// Returns the text, object or tool calls of the output.
pub(super) fn output(attributes: &mut Attributes) -> Option<String> {
    attributes
        .take_text(Key::AiText)
        .or_else(|| attributes.take_first(&[Key::AiObject, Key::AiToolCalls]).map(text::readable))
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn vercel_operation_determines_span_type() {
        for (operation, expected) in [
            ("ai.generateText", SpanType::Other),
            ("ai.generateText.doGenerate", SpanType::Llm),
            ("ai.streamObject.doStream", SpanType::Llm),
            ("ai.toolCall", SpanType::Tool),
            ("ai.embedMany.doEmbed", SpanType::Other),
        ] {
            assert_eq!(kind(&attributes(&[("ai.operationId", operation)])), Some(expected), "{operation}");
        }
    }

    #[test]
    fn inner_messages_take_precedence_over_outer_prompt() {
        let mut inner = attributes(&[("ai.prompt", r#"{"prompt":"p"}"#), ("ai.prompt.messages", "[1]")]);
        assert_eq!(input(&mut inner).as_deref(), Some("[1]"));
        assert_eq!(input(&mut inner).as_deref(), Some(r#"{"prompt":"p"}"#));
        assert_eq!(input(&mut attributes(&[("ai.value", "\"text\"")])).as_deref(), Some("text"));
    }

    #[test]
    fn vercel_output_is_text_object_or_tool_calls() {
        assert_eq!(
            output(&mut attributes(&[("ai.response.toolCalls", "[2]"), ("ai.response.text", "Hi")]))
                .as_deref(),
            Some("Hi")
        );
        assert_eq!(
            output(&mut attributes(&[("ai.response.object", r#"{"a":"\u00fc"}"#)])).as_deref(),
            Some(r#"{"a":"ü"}"#)
        );
    }
}
