//! Google's Agent Development Kit: `gcp.vertex.agent.*`.
//!
//! Its spans hold whole Gemini requests and responses as JSON. From version 2 on it follows
//! [`super::genai`] and by default sends contents as log records only.

use api::SpanType;

use super::{
    attributes::Attributes,
    keys::Key,
    provider::{self, Request},
    raw::RawObject,
    text,
};
use crate::usage::Usage;

/// Placeholders for contents that were disabled or could not be serialized.
const ABSENT_CONTENTS: &[&str] = &["{}", "N/A", "null", "<not serializable>", "\"<not serializable>\""];

/// Recognizes a model call, which has no operation name. Tool spans have an empty request too.
pub(super) fn kind(attributes: &Attributes, name: &str) -> Option<SpanType> {
    let is_call =
        attributes.has(Key::AdkRequest) && (name == "call_llm" || attributes.has(Key::RequestModel));
    is_call.then_some(SpanType::Llm)
}

/// Returns the messages of the request, or the arguments of a tool.
pub(super) fn input(attributes: &mut Attributes) -> Option<Request> {
    if let Some(arguments) = take_contents(attributes, Key::AdkToolArguments) {
        attributes.drop_key(Key::AdkRequest);
        return Some(Request { input: text::unquoted(arguments), parameters: None });
    }
    let sent = take_contents(attributes, Key::AdkRequest)?;
    let request = provider::request(&sent);
    Some(request.unwrap_or_else(|| Request { input: text::readable(sent), parameters: None }))
}

/// Returns the model's response, or the result of a tool.
pub(super) fn output(attributes: &mut Attributes) -> Option<String> {
    if let Some(result) = take_contents(attributes, Key::AdkToolResponse) {
        attributes.drop_key(Key::AdkResponse);
        return Some(text::unquoted(result));
    }
    let sent = take_contents(attributes, Key::AdkResponse)?;
    let response = RawObject::parse(&sent);
    match response.as_ref().and_then(|it| it.get("content")) {
        Some(content) => provider::answer(content).or_else(|| Some(text::readable(sent.clone()))),
        // A failed call has an error instead of content, and the span's status repeats the error.
        None => Some(text::readable(sent)),
    }
}

/// Returns the token counts of the response. Gemini counts thoughts separately from the output.
pub(super) fn usage(attributes: &Attributes) -> Option<Usage> {
    let response = RawObject::parse(attributes.str(Key::AdkResponse)?)?;
    let sent = response.object("usage_metadata")?;
    let reasoning = sent.tokens("thoughts_token_count");
    let answer = sent.tokens("candidates_token_count");
    let usage = Usage {
        prompt: sent.tokens("prompt_token_count"),
        completion: answer.map(|it| it.saturating_add(reasoning.unwrap_or(0))),
        cached: sent.tokens("cached_content_token_count"),
        cache_write: None,
        reasoning,
        cached_in_prompt: true,
    };
    usage.is_reported().then_some(usage)
}

fn take_contents(attributes: &mut Attributes, key: Key) -> Option<String> {
    if attributes.str(key).is_some_and(|it| ABSENT_CONTENTS.contains(&it)) {
        attributes.drop_key(key);
    }
    attributes.take_text(key)
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    const RESPONSE: &str = r#"{"content":{"parts":[{"text":"Gr\u00fcezi"}],"role":"model"},"usage_metadata":{"candidates_token_count":9,"prompt_token_count":21,"cached_content_token_count":4,"thoughts_token_count":15}}"#;

    #[test]
    fn adk_model_call_contains_request_and_response() {
        let request = r#"{"model":"m","config":{"system_instruction":"Be brief"},"contents":[{"parts":[{"text":"Hi"}],"role":"user"}]}"#;
        let mut call = attributes(&[
            ("gen_ai.request.model", "m"),
            ("gcp.vertex.agent.llm_request", request),
            ("gcp.vertex.agent.llm_response", RESPONSE),
        ]);
        assert_eq!(kind(&call, "call_llm"), Some(SpanType::Llm));
        let usage = usage(&call);
        assert_eq!(
            usage.map(|it| (it.prompt, it.completion, it.cached, it.reasoning)),
            Some((Some(21), Some(24), Some(4), Some(15)))
        );
        assert_eq!(
            input(&mut call).map(|it| it.input).as_deref(),
            Some(
                r#"[{"role":"system","parts":[{"type":"text","content":"Be brief"}]},{"role":"user","parts":[{"type":"text","content":"Hi"}]}]"#
            )
        );
        assert_eq!(output(&mut call).as_deref(), Some("Grüezi"));
    }

    #[test]
    fn adk_tool_call_contains_arguments_and_response() {
        let mut tool = attributes(&[
            ("gcp.vertex.agent.tool_call_args", r#"{"city": "Z\u00fcrich"}"#),
            ("gcp.vertex.agent.tool_response", r#"{"w": "sunny"}"#),
            ("gcp.vertex.agent.llm_request", "{}"),
            ("gcp.vertex.agent.llm_response", "{}"),
        ]);
        assert_eq!(kind(&tool, "execute_tool get_weather"), None);
        assert_eq!(input(&mut tool).map(|it| it.input).as_deref(), Some(r#"{"city": "Zürich"}"#));
        assert_eq!(output(&mut tool).as_deref(), Some(r#"{"w": "sunny"}"#));
        assert!(tool.into_rest().iter().all(|it| it.value.is_none()));
        let mut silent = attributes(&[
            ("gcp.vertex.agent.tool_call_args", "N/A"),
            ("gcp.vertex.agent.tool_response", "{}"),
        ]);
        assert!(input(&mut silent).is_none() && output(&mut silent).is_none());
    }
}
