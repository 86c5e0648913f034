//! Tokens, prices, failures and ids in the spans of providers and their instrumentations.

use serde_json::{Value, json};
use tests::{
    Caller,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request_from},
};

const BEDROCK_MODEL: &str = "anthropic.claude-3-5-sonnet-20241022-v2:0";

on_both_databases! {
    /// The usage that botocore and OpenLLMetry send: 31 input tokens, plus 5 read from the cache.
    async fn cache_reads_of_bedrock_are_priced_separately(app: TestApp) {
        let key = app.full_key();
        let call = |span: Span| span.with("gen_ai.operation.name", "chat").with("gen_ai.request.model", BEDROCK_MODEL)
            .with("gen_ai.usage.input_tokens", 31).with("gen_ai.usage.output_tokens", 12)
            .with("gen_ai.usage.cache_read.input_tokens", 5);
        for (scope, provider) in [
            ("opentelemetry.instrumentation.botocore.bedrock-runtime", "gen_ai.system"),
            ("opentelemetry.instrumentation.bedrock", "gen_ai.provider.name"),
        ] {
            let span = stored(&key, scope, |span| call(span).with(provider, "aws.bedrock")).await;
            assert_eq!(span["cost"], 0.000_274_5, "{scope}: {}", span["metadata"]["cost_details"]);
            assert_eq!((&span["prompt_tokens"], &span["usage_details"]), (&json!(31), &json!({"cached_input_tokens": 5})));
        }
    }

    async fn requested_model_prices_call_of_unknown_model(app: TestApp) {
        let key = app.full_key();
        let call = |asked: &'static str, answered: &'static str| move |span: Span| {
            span.calls(answered, 33, 13).with("gen_ai.request.model", asked)
        };
        let span = stored(&key, "opentelemetry.instrumentation.bedrock", call(BEDROCK_MODEL, "claude")).await;
        assert_eq!((&span["model"], &span["metadata"]["request_model"]), (&json!("claude"), &json!(BEDROCK_MODEL)));
        assert_eq!(span["cost"], 0.000_294);
        let span = stored(&key, "test", call("gpt-4o", "gpt-4o-mini")).await;
        let details = &span["metadata"]["cost_details"];
        assert_eq!(details["model"], "gpt-4o-mini", "the responding model has precedence");
        assert_eq!(stored(&key, "test", call("unknown-model", "neither")).await["cost"], Value::Null);
        // OpenInference names the requested model in the parameters of the call.
        let span = stored(&key, "openinference.instrumentation.openai", |span| span.with("openinference.span.kind", "LLM")
            .with("llm.model_name", "my-deployment").with("llm.invocation_parameters", r#"{"model":"gpt-4o"}"#)
            .with("llm.token_count.prompt", 1000).with("llm.token_count.completion", 100)).await;
        assert_eq!((&span["cost"], &span["metadata"]["request_model"]), (&json!(0.0035), &json!("gpt-4o")));
    }

    async fn response_id_of_the_provider_is_shown(app: TestApp) {
        let key = app.full_key();
        for attribute in ["gen_ai.response.id", "ai.response.id"] {
            let span = stored(&key, "test", |span| span.calls("gpt-4o", 1, 1).with(attribute, "chatcmpl-1")).await;
            assert_eq!(span["metadata"]["response_id"], "chatcmpl-1", "{attribute}");
        }
    }

    async fn failure_type_follows_from_status_type_and_message(app: TestApp) {
        let key = app.full_key();
        for (kind, message, failure) in [
            ("429", "", "rate_limit"),
            ("504", "", "timeout"),
            ("ThrottlingException", "Too many tokens, please wait before trying again.", "rate_limit"),
            ("BadRequestError", "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292", "context_length"),
            ("", "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs.", "context_length"),
            ("pydantic_core._pydantic_core.ValidationError", "1 validation error for Weather", "invalid_response"),
            ("", "1 validation error for Weather\ntemp_c\n  Field required [type=missing]", "invalid_response"),
            ("ZodError", "[]", "invalid_response"),
            ("Error", "[\n {\n \"code\": \"invalid_type\",\n \"path\": [\"city\"] } ]", "invalid_response"),
            ("HTTPValidationError", "body.messages is missing", "other"),
        ] {
            let span = stored(&key, "test", |span| span.calls("gpt-4o", 1, 1).failed(message).with("error.type", kind)).await;
            assert_eq!(span["failure_type"], failure, "{kind}: {message}");
            assert_eq!(span["error"], if message.is_empty() { kind } else { message });
        }
        let span = stored(&key, "test", |span| span.calls("gpt-4o", 1, 1).failed("").with("http.status_code", 429)).await;
        assert_eq!(span["failure_type"], "rate_limit");
    }
}

/// Stores a span of this instrumentation that `make` extends, and returns it as shown.
async fn stored(key: &Caller, scope: &str, make: impl FnOnce(Span) -> Span) -> Value {
    let trace = fastrand::u128(1..);
    let span = make(Span::new(trace, 1, "span", TEST_START_MICROS));
    assert_eq!(key.post("/v1/otlp/traces", &request_from(scope, [&span])).await.ok(), json!({}));
    key.get(&format!("/v1/traces/{trace:032x}")).await.ok()["spans"][0].clone()
}
