//! Langfuse: `langfuse.observation.*` and `langfuse.trace.*`.

use api::SpanType;
use serde::Deserialize;

use super::{attributes::Attributes, keys::Key, text};
use crate::usage::Usage;

/// Returns the span type from the observation's type.
pub(super) fn kind(attributes: &Attributes) -> Option<SpanType> {
    Some(match attributes.str(Key::LangfuseType)? {
        "generation" => SpanType::Llm,
        "tool" => SpanType::Tool,
        "retriever" => SpanType::Retrieval,
        _ => SpanType::Other,
    })
}

/// Returns the input of the observation.
pub(super) fn input(attributes: &mut Attributes) -> Option<String> {
    attributes.take_text(Key::LangfuseInput).map(text::unquoted)
}

/// Returns the output of the observation; plain text if it is one response of text.
pub(super) fn output(attributes: &mut Attributes) -> Option<String> {
    let output = attributes.take_text(Key::LangfuseOutput)?;
    if text::is_empty_answer(&output) && !output.contains("\"finish_reason\"") {
        return None;
    }
    Some(text::plain_answer(&output).unwrap_or_else(|| text::unquoted(output)))
}

/// Returns the message of an observation at level `ERROR`, which is a failure even if the status is not
/// an error.
pub(super) fn error(attributes: &mut Attributes) -> Option<String> {
    if attributes.str(Key::LangfuseLevel)? != "ERROR" {
        return None;
    }
    Some(attributes.take_text(Key::LangfuseStatus).unwrap_or_else(|| "error".to_owned()))
}

/// Returns the usage details, which contain the provider's own names.
pub(super) fn usage(attributes: &mut Attributes) -> Option<Usage> {
    let usage = usage_of(attributes.str(Key::LangfuseUsage)?)?;
    attributes.drop_key(Key::LangfuseUsage);
    Some(usage)
}

/// Returns the total of the cost details.
pub(super) fn cost(attributes: &Attributes) -> Option<f64> {
    #[derive(Deserialize)]
    struct CostDetails {
        total: Option<f64>,
    }
    serde_json::from_str::<CostDetails>(attributes.str(Key::LangfuseCost)?).ok()?.total
}

/// Parses a usage object with the names of OpenAI's two interfaces, Anthropic's, or Langfuse's own.
///
/// Returns `None` if the value is not an object of this form, or contains no count.
pub(super) fn usage_of(json: &str) -> Option<Usage> {
    let sent = serde_json::from_str::<LangfuseUsage>(json).ok()?;
    let details = sent.prompt_tokens_details.or(sent.input_tokens_details).unwrap_or_default();
    let out = sent.completion_tokens_details.or(sent.output_tokens_details).unwrap_or_default();
    // These two names are Anthropic's and Langfuse's, which count cached tokens separately.
    let apart = sent.cache_read_input_tokens.or(sent.input_cached_tokens);
    let apart_write = sent.cache_creation_input_tokens.or(sent.input_cache_creation);
    let usage = Usage {
        prompt: count(sent.prompt_tokens.or(sent.input_tokens).or(sent.input)),
        completion: count(sent.completion_tokens.or(sent.output_tokens).or(sent.output)),
        cached: count(apart.or(details.cached_tokens)),
        cache_write: count(apart_write.or(details.cache_write_tokens)),
        reasoning: count(out.reasoning_tokens.or(sent.output_reasoning_tokens)),
        cached_in_prompt: apart.is_none() && apart_write.is_none(),
    };
    usage.is_reported().then_some(usage)
}

fn count(number: Option<f64>) -> Option<i64> {
    super::value::tokens(&opentelemetry_proto::tonic::common::v1::any_value::Value::DoubleValue(number?))
}

#[derive(Deserialize)]
struct LangfuseUsage {
    prompt_tokens: Option<f64>,
    input_tokens: Option<f64>,
    input: Option<f64>,
    completion_tokens: Option<f64>,
    output_tokens: Option<f64>,
    output: Option<f64>,
    prompt_tokens_details: Option<TokenDetails>,
    input_tokens_details: Option<TokenDetails>,
    completion_tokens_details: Option<TokenDetails>,
    output_tokens_details: Option<TokenDetails>,
    cache_read_input_tokens: Option<f64>,
    input_cached_tokens: Option<f64>,
    cache_creation_input_tokens: Option<f64>,
    input_cache_creation: Option<f64>,
    output_reasoning_tokens: Option<f64>,
}

#[derive(Default, Deserialize)]
struct TokenDetails {
    cached_tokens: Option<f64>,
    cache_write_tokens: Option<f64>,
    reasoning_tokens: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn usage_of_every_provider_is_parsed() {
        let openai = usage_of(
            r#"{"prompt_tokens":10,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3}}"#,
        );
        assert_eq!(
            openai,
            Some(Usage {
                prompt: Some(10),
                completion: Some(4),
                cached: Some(3),
                cached_in_prompt: true,
                ..Usage::default()
            })
        );
        let anthropic = usage_of(r#"{"input_tokens":10,"output_tokens":4,"cache_read_input_tokens":30}"#);
        assert_eq!(
            anthropic,
            Some(Usage {
                prompt: Some(10),
                completion: Some(4),
                cached: Some(30),
                cached_in_prompt: false,
                ..Usage::default()
            })
        );
        for nothing in ["{}", "null", "{", r#"{"input":-1}"#, "[1]"] {
            assert_eq!(usage_of(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn langfuse_level_error_is_a_failure() {
        let given =
            [("langfuse.observation.level", "ERROR"), ("langfuse.observation.status_message", "boom")];
        assert_eq!(error(&mut attributes(&given)).as_deref(), Some("boom"));
        assert_eq!(error(&mut attributes(&[("langfuse.observation.level", "WARNING")])), None);
    }
}
