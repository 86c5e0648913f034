//! OpenTelemetry GenAI: the current names `gen_ai.*` of the semantic conventions.
//!
//! Also sent by the Vercel AI SDK from version 7, Pydantic AI, OpenLLMetry, OpenLIT, LiteLLM and the
//! instrumentation of the Anthropic SDK. Earlier names are in [`super::openllmetry`].
//! `gen_ai.aggregated_usage.*` is a sum over descendants and is ignored, so that it is not counted
//! twice.

use api::SpanType;

use super::{attributes::Attributes, keys::Key, memory, text};

/// Returns the span type for the operation name; the SDK's own attribute takes precedence.
pub(super) fn kind(attributes: &Attributes) -> Option<SpanType> {
    Some(match attributes.str(Key::OperationName)? {
        "chat" | "completion" | "text_completion" | "generate_content" | "responses" | "message"
        | "messages" | "image" | "invoke_model" | "converse"
        // Fetches the response of a call that runs in the background. The usage of a response ID counts once in a trace.
        | "fetch_response" => SpanType::Llm,
        // LiteLLM names its own functions.
        other
            if other.ends_with("completion")
                || other.ends_with("responses")
                || other.ends_with("messages") =>
        {
            SpanType::Llm
        }
        "execute_tool" => SpanType::Tool,
        "retrieval" | "retrieve" | "vector_db_retrieve" | "vectordb" | "rerank"
        | memory::SEARCH_OPERATION => SpanType::Retrieval,
        _ => SpanType::Other,
    })
}

/// Returns the messages; [`super::instructions`] adds system instructions that are sent separately.
pub(super) fn input(attributes: &mut Attributes) -> Option<String> {
    attributes.take_text(Key::InputMessages).map(text::readable)
}

/// Returns the response, as plain text if it consists of text only. Messages without content are not a
/// response; they remain an attribute if they state the finish reason.
pub(super) fn output(attributes: &mut Attributes) -> Option<String> {
    let messages = attributes.take_text(Key::OutputMessages)?;
    if text::is_empty_answer(&messages) {
        if messages.contains("\"finish_reason\"") {
            attributes.put_back(Key::OutputMessages, messages);
        }
        return None;
    }
    Some(text::plain_answer(&messages).unwrap_or_else(|| text::readable(messages)))
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn genai_operation_determines_span_type() {
        let cases = [
            ("chat", SpanType::Llm),
            ("acompletion", SpanType::Llm),
            ("execute_tool", SpanType::Tool),
            ("vector_db_retrieve", SpanType::Retrieval),
            ("embeddings", SpanType::Other),
            ("invoke_agent", SpanType::Other),
            ("invoke_workflow", SpanType::Other),
            ("plan", SpanType::Other),
            ("fetch_response", SpanType::Llm),
            ("search_memory", SpanType::Retrieval),
            ("create_memory_store", SpanType::Other),
        ];
        for (operation, expected) in cases {
            assert_eq!(
                kind(&attributes(&[("gen_ai.operation.name", operation)])),
                Some(expected),
                "{operation}"
            );
        }
        assert_eq!(kind(&attributes(&[])), None);
    }

    #[test]
    fn genai_output_without_content_is_none_and_remains_attribute() {
        let sent = |messages: &str| {
            let mut given = attributes(&[("gen_ai.output.messages", messages)]);
            let output = output(&mut given);
            (output, given.str(Key::OutputMessages).map(str::to_owned))
        };
        let ended = r#"[{"role":"assistant","parts":[],"finish_reason":"tool_calls"}]"#;
        assert_eq!(sent(ended), (None, Some(ended.to_owned())));
        assert_eq!(sent(r#"[{"role":"assistant","parts":[]}]"#), (None, None));
        let call = r#"[{"type":"function_call","name":"f"}]"#;
        assert_eq!(sent(call), (Some(call.to_owned()), None));
    }
}
