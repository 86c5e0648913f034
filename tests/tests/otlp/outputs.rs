//! Outputs of models and tools: shown as plain text if nothing is lost, and never dropped.

use serde_json::{Value, json};
use tests::{
    Caller,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request},
};

on_both_databases! {
    /// Outputs that are neither messages with parts nor with content.
    async fn short_outputs_of_every_shape_are_shown(app: TestApp) {
        let key = app.full_key();
        let outputs = [
            r#"[{"city":"Zürich","temp_c":21}]"#,
            r#"[{"type":"function_call","name":"get_weather","arguments":"{}"}]"#,
            r#"[{"role":"assistant","audio":{"id":"audio_1"}}]"#,
            r#"[{"role":"assistant","refusal":"I can't"}]"#,
            r#"[{}]"#,
            "[]",
        ];
        for (operation, kind) in [("chat", "llm"), ("execute_tool", "tool"), ("invoke_agent", "other")] {
            for output in outputs {
                let span = stored(&key, |span| span.with("gen_ai.operation.name", operation).with("gen_ai.output.messages", output)).await;
                assert_eq!((&span["type"], &span["output"]), (&json!(kind), &json!(output)));
            }
        }
    }

    async fn message_without_content_is_null_with_finish_reason(app: TestApp) {
        let key = app.full_key();
        let ended = r#"[{"role":"assistant","parts":[],"finish_reason":"tool_calls"}]"#;
        let span = stored(&key, |span| span.calls("gpt-4o", 10, 5).with("gen_ai.output.messages", ended)).await;
        assert_eq!((&span["output"], &span["metadata"]["gen_ai.output.messages"]), (&Value::Null, &json!(ended)));
    }

    /// OpenInference's LangChain instrumentation writes a message with only a role for a failed call.
    async fn failed_call_of_langchain_has_no_output(app: TestApp) {
        let key = app.full_key();
        let span = stored(&key, |span| span.with("openinference.span.kind", "LLM")
            .with("llm.output_messages.0.message.role", "assistant").failed("Rate limit reached")).await;
        assert_eq!((&span["type"], &span["output"]), (&json!("llm"), &Value::Null));
    }

    /// OpenInference's OpenAI Agents instrumentation writes the text of a message twice.
    async fn message_with_content_and_contents_has_its_text_once(app: TestApp) {
        let key = app.full_key();
        let message = |span: Span, of: &str, role: &str, text: &str| {
            let at = |rest: &str| format!("llm.{of}_messages.0.message.{rest}");
            span.with(&at("role"), role)
                .with(&at("contents.0.message_content.type"), "text")
                .with(&at("contents.0.message_content.text"), text)
                .with(&at("content"), text)
        };
        let span = stored(&key, |span| {
            let span = span.with("openinference.span.kind", "LLM");
            message(message(span, "input", "user", "weather?"), "output", "assistant", "It is sunny.")
        }).await;
        assert_eq!(span["output"], "It is sunny.");
        assert_eq!(span["input"], r#"[{"role":"user","content":"weather?"}]"#);
        let with_call = stored(&key, |span| {
            message(span.with("openinference.span.kind", "LLM"), "output", "assistant", "One moment.")
                .with("llm.output_messages.0.message.tool_calls.0.tool_call.function.name", "f")
        }).await;
        assert_eq!(with_call["output"].as_str().unwrap().matches("One moment.").count(), 1);
    }

    async fn system_instructions_lead_the_input_in_every_form(app: TestApp) {
        let key = app.full_key();
        let user = r#"{"role":"user","parts":[{"type":"text","content":"Hi"}]}"#;
        let list = format!("[{user}]");
        for (instructions, input) in [
            ("Be terse", list.as_str()),
            ("\"Be terse\"", list.as_str()),
            (r#"[{"type":"text","content":"Be terse"}]"#, list.as_str()),
            (r#"{"type":"text","content":"Be terse"}"#, list.as_str()),
            (r#"["Be terse"]"#, user),
            ("Be terse", "Hi"),
            ("Be terse", ""),
        ] {
            let span = stored(&key, |span| span.calls("gpt-4o", 1, 1)
                .with("gen_ai.system_instructions", instructions).with("gen_ai.input.messages", input)).await;
            let messages: Value = serde_json::from_str(span["input"].as_str().unwrap()).unwrap();
            assert_eq!(messages[0]["role"], "system", "{instructions}: {messages}");
            assert_eq!(messages[0].to_string().matches("Be terse").count(), 1, "{instructions}: {messages}");
            if !input.is_empty() {
                assert_eq!((messages.as_array().unwrap().len(), &messages[1]["role"]), (2, &json!("user")), "{messages}");
            }
            assert!(span["metadata"].get("gen_ai.system_instructions").is_none());
        }
        // Structured attributes, messages of other conventions, and repeated instructions.
        let repeated = r#"[{"role":"system","content":"Be terse"},{"role":"user","content":"Hi"}]"#;
        let span = stored(&key, |span| span.calls("gpt-4o", 1, 1).with("gen_ai.system_instructions", vec!["Be terse"])
            .with("gen_ai.input.messages", repeated)).await;
        assert_eq!(span["input"], repeated);
        let span = stored(&key, |span| span.calls("gpt-4o", 1, 1).with("gen_ai.system_instructions", vec!["Be terse"])
            .with("gen_ai.prompt.0.role", "user").with("gen_ai.prompt.0.content", "Hi")).await;
        assert_eq!(span["input"], repeated);
    }
}

/// Stores a span that `make` extends, and returns it as shown.
async fn stored(key: &Caller, make: impl FnOnce(Span) -> Span) -> Value {
    let trace = fastrand::u128(1..);
    let span = make(Span::new(trace, 1, "span", TEST_START_MICROS));
    assert_eq!(key.post("/v1/otlp/traces", &request([&span])).await.ok(), json!({}));
    key.get(&format!("/v1/traces/{trace:032x}")).await.ok()["spans"][0].clone()
}
