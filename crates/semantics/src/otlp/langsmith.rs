//! LangSmith's OpenTelemetry export: `langsmith.*` beside GenAI keys.
//!
//! The inputs and outputs of a run are JSON in `gen_ai.prompt` and `gen_ai.completion`. Their form depends
//! on the traced code: LangChain, LangGraph, a wrapped provider, or a function. The operation name only
//! approximates the run type (a retriever is `embeddings`, a prompt template `chat`), so the run type
//! decides.

use api::SpanType;
use opentelemetry_proto::tonic::common::v1::any_value::Value;

use super::{
    attributes::Attributes,
    keys::{Group, Key},
    provider::{self, Request, ResponseFacts},
    value, wrapped,
};

/// Prefixes of the tags that LangChain gives to its internal steps.
const STEP_TAG_PREFIXES: &[&str] =
    &["seq:step:", "graph:step:", "map:key:", "branch:", "condition:", "langsmith:", "langgraph:"];
/// Prefix of the environment variables that every run carries as metadata.
const ENVIRONMENT_PREFIX: &str = "LANGSMITH_";

/// Returns the span type for the run type.
pub(super) fn kind(attributes: &Attributes) -> Option<SpanType> {
    Some(match attributes.str(Key::LangsmithKind)? {
        "llm" => SpanType::Llm,
        "tool" => SpanType::Tool,
        "retriever" => SpanType::Retrieval,
        _ => SpanType::Other,
    })
}

/// Returns the inputs of the run.
pub(super) fn input(attributes: &mut Attributes, span_type: &SpanType) -> Option<Request> {
    wrapped::input(take_contents(attributes, Key::OpenlitPrompt)?, span_type)
}

/// Returns the outputs of the run.
pub(super) fn output(attributes: &mut Attributes, span_type: &SpanType) -> Option<String> {
    wrapped::output(take_contents(attributes, Key::OpenlitCompletion)?, span_type)
}

/// Takes an input or output of this sender; some versions send them as bytes.
fn take_contents(attributes: &mut Attributes, key: Key) -> Option<String> {
    if !attributes.has(Key::LangsmithKind) {
        return None;
    }
    match attributes.take(key)? {
        Value::BytesValue(bytes) => String::from_utf8(bytes).ok(),
        other => value::into_text(other),
    }
}

/// Extracts facts from the response of a model call.
pub(super) fn facts(attributes: &mut Attributes) -> Option<ResponseFacts> {
    attributes.str(Key::LangsmithKind)?;
    let mut facts = attributes.str(Key::OpenlitCompletion).map(provider::facts).unwrap_or_default();
    let metadata = attributes
        .take_from_group(Group::LangsmithMetadata, &["usage_metadata"])
        .and_then(value::into_text)
        .or_else(|| attributes.take_text(Key::LangsmithUsage));
    facts.usage = metadata.as_deref().and_then(provider::langchain_usage).or(facts.usage);
    // The exporter adds these itself.
    facts.finish_reasons = None;
    Some(facts)
}

/// Returns whether a tag was set by the application, not by LangChain's internals.
pub(super) fn is_chosen_tag(tag: &str) -> bool {
    !STEP_TAG_PREFIXES.iter().any(|it| tag.starts_with(it))
}

/// Returns whether a metadata key describes the run.
pub(super) fn is_metadata(key: &str) -> bool {
    !key.starts_with(ENVIRONMENT_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn langsmith_run_type_determines_span_type() {
        for (kind_sent, expected) in [
            ("llm", SpanType::Llm),
            ("tool", SpanType::Tool),
            ("retriever", SpanType::Retrieval),
            ("prompt", SpanType::Other),
            ("chain", SpanType::Other),
        ] {
            let given = attributes(&[("langsmith.span.kind", kind_sent), ("gen_ai.operation.name", "chat")]);
            assert_eq!(kind(&given), Some(expected), "{kind_sent}");
        }
    }

    #[test]
    fn prompts_of_other_senders_are_not_unwrapped() {
        let mut other = attributes(&[("gen_ai.prompt", "user: Hi")]);
        assert!(input(&mut other, &SpanType::Llm).is_none());
        assert!(other.has(Key::OpenlitPrompt));
        assert!(facts(&mut other).is_none());
    }

    #[test]
    fn langsmith_usage_is_taken_from_metadata() {
        let mut run = attributes(&[
            ("langsmith.span.kind", "llm"),
            (
                "langsmith.metadata.usage_metadata",
                r#"{"input_tokens":41,"output_tokens":12,"input_token_details":{"cache_read":8},"output_token_details":{"reasoning":5}}"#,
            ),
        ]);
        let usage = facts(&mut run).and_then(|it| it.usage);
        assert_eq!(
            usage.map(|it| (it.prompt, it.completion, it.cached, it.reasoning)),
            Some((Some(41), Some(12), Some(8), Some(5)))
        );
    }

    #[test]
    fn langchain_step_tags_are_ignored() {
        assert!(is_chosen_tag("env:prod") && is_chosen_tag("seq"));
        assert!(!is_chosen_tag("seq:step:2") && !is_chosen_tag("langsmith:hidden"));
    }
}
