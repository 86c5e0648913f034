//! OpenTelemetry GenAI: `gen_ai.*` as the semantic conventions name it now.
//!
//! Also sent by the Vercel AI SDK from version 7, Pydantic AI, OpenLLMetry, OpenLIT, LiteLLM
//! and the Anthropic SDK's own instrumentation. The keys that came before are in
//! [`super::openllmetry`]; `gen_ai.aggregated_usage.*` is a sum over descendants and has no
//! meaning here, so that it never counts.

use api::SpanType;

use super::{attributes::Attributes, keys::Key, text};

/// What the operation says; its own SDK's word, if any, was asked before.
pub(super) fn kind(attributes: &Attributes) -> Option<SpanType> {
    Some(match attributes.str(Key::OperationName)? {
        "chat" | "completion" | "text_completion" | "generate_content" | "responses" | "message"
        | "messages" | "image" | "invoke_model" | "converse" => SpanType::Llm,
        // LiteLLM names its own functions.
        other
            if other.ends_with("completion")
                || other.ends_with("responses")
                || other.ends_with("messages") =>
        {
            SpanType::Llm
        }
        "execute_tool" => SpanType::Tool,
        "retrieval" | "retrieve" | "vector_db_retrieve" | "vectordb" | "rerank" => SpanType::Retrieval,
        _ => SpanType::Other,
    })
}

/// The messages, the system instructions first unless the messages repeat them.
pub(super) fn input(attributes: &mut Attributes) -> Option<String> {
    let messages = text::readable(attributes.take_text(Key::InputMessages)?);
    let Some(rest) = messages.strip_prefix('[') else { return Some(messages) };
    let names_system = rest.get(..64).unwrap_or(rest).replace(' ', "").starts_with("{\"role\":\"system\"");
    if names_system {
        attributes.drop_key(Key::SystemInstructions);
        return Some(messages);
    }
    match attributes.str(Key::SystemInstructions) {
        Some(parts) if parts.starts_with('[') => {
            let parts = attributes.take_text(Key::SystemInstructions).map(text::readable).unwrap_or_default();
            let comma = if rest.trim_start().starts_with(']') { "" } else { "," };
            Some(format!("[{{\"role\":\"system\",\"parts\":{parts}}}{comma}{rest}"))
        }
        _ => Some(messages),
    }
}

/// The answer: plain text where it is nothing else. Messages without any part are no answer.
pub(super) fn output(attributes: &mut Attributes) -> Option<String> {
    let messages = attributes.take_text(Key::OutputMessages).filter(|it| !text::is_empty_answer(it))?;
    Some(text::plain_answer(&messages).unwrap_or_else(|| text::readable(messages)))
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn operations_tell_the_kind() {
        let cases = [
            ("chat", SpanType::Llm),
            ("acompletion", SpanType::Llm),
            ("execute_tool", SpanType::Tool),
            ("vector_db_retrieve", SpanType::Retrieval),
            ("embeddings", SpanType::Other),
            ("invoke_agent", SpanType::Other),
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
    fn instructions_lead_the_messages_once() {
        let user = r#"{"role":"user","parts":[{"type":"text","content":"Z\u00fcrich"}]}"#;
        let system = r#"[{"type":"text","content":"Be terse"}]"#;
        let both = |messages: &str| {
            input(&mut attributes(&[
                ("gen_ai.input.messages", messages),
                ("gen_ai.system_instructions", system),
            ]))
        };
        let user_readable = user.replace("\\u00fc", "ü");
        assert_eq!(
            both(&format!("[{user}]")),
            Some(format!(r#"[{{"role":"system","parts":{system}}},{user_readable}]"#))
        );
        let repeated = format!(r#"[{{"role": "system", "parts": {system}}}, {user_readable}]"#);
        assert_eq!(both(&repeated), Some(repeated.clone()));
        assert_eq!(both("plain text"), Some("plain text".to_owned()));
    }
}
