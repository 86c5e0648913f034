//! OpenInference: `openinference.span.kind`, `llm.*`, `input.value`, `output.value`.

use std::borrow::Cow;

use api::SpanType;
use serde::Deserialize;

use super::{
    attributes::Attributes,
    indexed,
    keys::{Group, Key},
    text,
};

/// Returns the span type from the span kind attribute.
pub(super) fn kind(attributes: &Attributes) -> Option<SpanType> {
    let kind = attributes.str(Key::OpeninferenceKind)?;
    Some(match_kind(kind))
}

fn match_kind(kind: &str) -> SpanType {
    if kind.eq_ignore_ascii_case("LLM") {
        SpanType::Llm
    } else if kind.eq_ignore_ascii_case("TOOL") {
        SpanType::Tool
    } else if kind.eq_ignore_ascii_case("RETRIEVER") || kind.eq_ignore_ascii_case("RERANKER") {
        SpanType::Retrieval
    } else {
        SpanType::Other
    }
}

/// Assembles the input messages from their attributes. Only model calls have complete messages; on
/// other spans they are an excerpt of the value, which takes precedence there.
pub(super) fn input(attributes: &mut Attributes, span_type: &SpanType) -> Option<String> {
    let value = if *span_type == SpanType::Llm { None } else { value_in(attributes) };
    value.or_else(|| indexed::assemble(attributes.take_group(Group::LlmInput)))
}

/// Assembles the output messages; plain text if they are one response of text.
pub(super) fn output(attributes: &mut Attributes, span_type: &SpanType) -> Option<String> {
    let value = if *span_type == SpanType::Llm { None } else { value_out(attributes) };
    value.or_else(|| {
        let messages = indexed::assemble(attributes.take_group(Group::LlmOutput))?;
        // A failed LangChain call has a message that contains only a role.
        if text::is_empty_answer(&messages) {
            return None;
        }
        Some(text::plain_answer(&messages).unwrap_or(messages))
    })
}

/// Returns the input value.
pub(super) fn value_in(attributes: &mut Attributes) -> Option<String> {
    attributes.take_text(Key::InputValue).map(text::readable)
}

/// Returns the output value. The output of an embedding consists of vectors and is dropped.
pub(super) fn value_out(attributes: &mut Attributes) -> Option<String> {
    if attributes.str(Key::OpeninferenceKind).is_some_and(|kind| kind.eq_ignore_ascii_case("EMBEDDING")) {
        attributes.drop_key(Key::OutputValue);
    }
    attributes.take_text(Key::OutputValue).map(text::readable)
}

/// Returns the documents of a retriever or reranker, as a JSON list.
pub(super) fn documents(attributes: &mut Attributes) -> Option<String> {
    indexed::assemble(attributes.take_group(Group::Documents))
        .or_else(|| indexed::assemble(attributes.take_group(Group::Reranked)))
}

/// Takes the requested model from the call's parameters, for spans that name the responding model.
pub(super) fn requested_model(attributes: &Attributes) -> Option<String> {
    model_in(attributes, &[Key::LlmInvocation])
}

/// Takes the requested model from the call's parameters or its request: failed calls name it nowhere else.
pub(super) fn model_in_parameters(attributes: &Attributes) -> Option<String> {
    model_in(attributes, &[Key::LlmInvocation, Key::InputValue])
}

fn model_in(attributes: &Attributes, keys: &[Key]) -> Option<String> {
    keys.iter()
        .filter_map(|key| attributes.str(*key))
        .filter(|json| json.starts_with('{') && json.contains("\"model\""))
        .find_map(|json| serde_json::from_str::<Parameters<'_>>(json).ok()?.model)
        .filter(|model| !model.is_empty())
        .map(|model| text::clean(model.into_owned()))
}

#[derive(Deserialize)]
struct Parameters<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn openinference_kind_determines_span_type() {
        for (kind, expected) in [
            ("LLM", SpanType::Llm),
            ("tool", SpanType::Tool),
            ("RERANKER", SpanType::Retrieval),
            ("GUARDRAIL", SpanType::Other),
        ] {
            assert_eq!(super::kind(&attributes(&[("openinference.span.kind", kind)])), Some(expected));
        }
    }

    #[test]
    fn openinference_messages_and_documents_are_assembled() {
        let mut given = attributes(&[
            ("llm.input_messages.0.message.role", "user"),
            ("llm.input_messages.0.message.content", "Hi"),
            ("llm.output_messages.0.message.role", "assistant"),
            ("llm.output_messages.0.message.content", "Hello"),
            ("retrieval.documents.0.document.id", "doc-a"),
        ]);
        assert_eq!(input(&mut given, &SpanType::Llm).as_deref(), Some(r#"[{"role":"user","content":"Hi"}]"#));
        assert_eq!(output(&mut given, &SpanType::Llm).as_deref(), Some("Hello"));
        assert_eq!(documents(&mut given).as_deref(), Some(r#"[{"id":"doc-a"}]"#));
    }

    #[test]
    fn repeated_response_text_is_stored_once() {
        let mut given = attributes(&[
            ("llm.output_messages.0.message.role", "assistant"),
            ("llm.output_messages.0.message.contents.0.message_content.type", "text"),
            ("llm.output_messages.0.message.contents.0.message_content.text", "Sunny."),
            ("llm.output_messages.0.message.content", "Sunny."),
        ]);
        assert_eq!(output(&mut given, &SpanType::Llm).as_deref(), Some("Sunny."));
    }

    #[test]
    fn message_without_content_is_not_a_response() {
        let mut given = attributes(&[("llm.output_messages.0.message.role", "assistant")]);
        assert_eq!(output(&mut given, &SpanType::Llm), None);
    }

    #[test]
    fn failed_call_takes_model_from_request() {
        let given = attributes(&[("input.value", r#"{"messages":[],"model":"gpt-4o"}"#)]);
        assert_eq!(model_in_parameters(&given).as_deref(), Some("gpt-4o"));
        assert_eq!(model_in_parameters(&attributes(&[("input.value", "the \"model\" is")])), None);
    }
}
