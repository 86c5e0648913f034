//! MLflow's own attributes: `mlflow.spanType`, `.spanInputs`, `.spanOutputs`, `.chat.tokenUsage`.
//!
//! Every attribute of its spans is JSON, including those of the application: texts are quoted. Inputs
//! and outputs are the arguments and the result of the traced function.

use api::SpanType;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};

use super::{
    attributes::Attributes,
    keys::Key,
    provider::{self, Request, ResponseFacts},
    raw::RawObject,
    text, wrapped,
};
use crate::usage::Usage;

/// An attribute that every span of this sender has.
const SPAN_TYPE_ATTRIBUTE: &str = "mlflow.spanType";

/// Removes the quotes from the texts of this sender's spans; other spans are unchanged.
pub(super) fn decode(attributes: &mut [KeyValue]) {
    if !attributes.iter().any(|it| it.key == SPAN_TYPE_ATTRIBUTE) {
        return;
    }
    for attribute in attributes {
        if let Some(AnyValue { value: Some(Value::StringValue(text)) }) = &mut attribute.value
            && text.starts_with('"')
        {
            *text = text::unquoted(std::mem::take(text));
        }
    }
}

/// Returns the span type. Unknown types are defined by the application.
pub(super) fn kind(attributes: &Attributes) -> Option<SpanType> {
    Some(match attributes.str(Key::MlflowType)? {
        "LLM" | "CHAT_MODEL" => SpanType::Llm,
        "TOOL" => SpanType::Tool,
        "RETRIEVER" | "RERANKER" => SpanType::Retrieval,
        "UNKNOWN" => return None,
        _ => SpanType::Other,
    })
}

/// Returns the arguments.
pub(super) fn input(attributes: &mut Attributes, span_type: &SpanType) -> Option<Request> {
    let mut request = wrapped::input(attributes.take_text(Key::MlflowInputs)?, span_type)?;
    // The parameters are attributes as well.
    if attributes.has(Key::PlainModel) {
        request.parameters = None;
    }
    Some(request)
}

/// Returns the result.
pub(super) fn output(attributes: &mut Attributes, span_type: &SpanType) -> Option<String> {
    wrapped::output(attributes.take_text(Key::MlflowOutputs)?, span_type)
}

/// Returns the requested model, which failed calls name nowhere else.
pub(super) fn requested_model(attributes: &Attributes) -> Option<String> {
    attributes.str(Key::MlflowType)?;
    let named = attributes.str(Key::PlainModel).map(str::to_owned);
    named.or_else(|| RawObject::parse(attributes.str(Key::MlflowInputs)?)?.text("model"))
}

/// Extracts facts from the response of a model call.
pub(super) fn facts(attributes: &Attributes) -> Option<ResponseFacts> {
    attributes.str(Key::MlflowOutputs).map(provider::facts)
}

/// Returns the token counts, which include cached tokens for every provider.
pub(super) fn usage(attributes: &mut Attributes) -> Option<Usage> {
    let sent = RawObject::parse(attributes.str(Key::MlflowUsage)?)?;
    let usage = Usage {
        prompt: sent.tokens("input_tokens"),
        completion: sent.tokens("output_tokens"),
        cached: sent.tokens("cache_read_input_tokens"),
        cache_write: sent.tokens("cache_creation_input_tokens"),
        reasoning: None,
        cached_in_prompt: true,
    };
    attributes.drop_key(Key::MlflowUsage);
    usage.is_reported().then_some(usage)
}

/// Returns the total cost.
pub(super) fn cost(attributes: &Attributes) -> Option<f64> {
    serde_json::from_str(RawObject::parse(attributes.str(Key::MlflowCost)?)?.get("total_cost")?).ok()
}

#[cfg(test)]
mod tests {
    use super::{super::attributes::tests::attributes, *};

    #[test]
    fn mlflow_texts_are_unquoted_only_on_mlflow_spans() {
        let decoded = |marked: bool| {
            let mut list = attributes(&[("custom", r#""Z\u00fcrich""#), ("n", "\"1")]).into_rest();
            list.extend(
                marked
                    .then(|| attributes(&[(SPAN_TYPE_ATTRIBUTE, r#""TOOL""#)]).into_rest())
                    .into_iter()
                    .flatten(),
            );
            decode(&mut list);
            let text = |it: &KeyValue| match it.value.as_ref().and_then(|it| it.value.as_ref()) {
                Some(Value::StringValue(text)) => text.clone(),
                _ => String::new(),
            };
            list.iter().map(text).collect::<Vec<_>>()
        };
        assert_eq!(decoded(true), ["Zürich", "\"1", "TOOL"]);
        assert_eq!(decoded(false), [r#""Z\u00fcrich""#, "\"1"]);
    }

    #[test]
    fn mlflow_span_type_determines_span_type() {
        for (sent, expected) in [
            ("CHAT_MODEL", Some(SpanType::Llm)),
            ("LLM", Some(SpanType::Llm)),
            ("TOOL", Some(SpanType::Tool)),
            ("RETRIEVER", Some(SpanType::Retrieval)),
            ("AGENT", Some(SpanType::Other)),
            ("MY_OWN", Some(SpanType::Other)),
            ("UNKNOWN", None),
        ] {
            assert_eq!(kind(&attributes(&[("mlflow.spanType", sent)])), expected, "{sent}");
        }
    }

    #[test]
    fn mlflow_model_call_is_shown_as_conversation() {
        let mut call = attributes(&[
            ("mlflow.spanType", "CHAT_MODEL"),
            (
                "mlflow.spanInputs",
                r#"{"model":"m","messages":[{"role":"user","content":"Hi"}],"temperature":0.2}"#,
            ),
            (
                "mlflow.spanOutputs",
                r#"{"id":"c","choices":[{"message":{"role":"assistant","content":"Hello"}}]}"#,
            ),
            ("mlflow.chat.tokenUsage", r#"{"input_tokens": 25, "output_tokens": 7, "total_tokens": 32}"#),
            ("mlflow.llm.cost", r#"{"total_cost": 0.5}"#),
        ]);
        assert_eq!(requested_model(&call).as_deref(), Some("m"));
        assert_eq!(cost(&call), Some(0.5));
        assert_eq!(usage(&mut call).map(|it| (it.prompt, it.completion)), Some((Some(25), Some(7))));
        let request = input(&mut call, &SpanType::Llm);
        let request = request.map(|it| (it.input, it.parameters));
        let parameters = Some(r#"{"model":"m","temperature":0.2}"#.to_owned());
        assert_eq!(request, Some((r#"[{"role":"user","content":"Hi"}]"#.to_owned(), parameters)));
        assert_eq!(output(&mut call, &SpanType::Llm).as_deref(), Some("Hello"));
    }
}
