//! The execution of actions: the repeated request and the remediated span.

use serde_json::{Value, json};

use crate::{
    provider::{BETTER_OUTPUT, Behaviour, COMPLETION_TOKENS, PROMPT_TOKENS},
    scene::{BAD_OUTPUT, TENANT_KEY},
    with_provider,
};

/// Returns the recorded messages, with this system message.
fn messages(system: &str) -> Value {
    json!([{"role": "system", "content": system}, {"role": "user", "content": "Where is my parcel?"}])
}

with_provider! {
    async fn retry_repeats_the_request_and_stores_a_remediated_span(scene: Scene) {
        let tool = json!({"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}});
        let metadata = json!({"gen_ai.request.temperature": 0.25, "gen_ai.request.max_tokens": 300, "gen_ai.tool.definitions": [tool]});
        let trace = scene.trace_with(json!({"metadata": metadata})).await;
        let before = scene.trace_detail(&trace).await;
        scene.app.advance(60);
        let requested = scene.retry(&trace).await;
        assert_eq!((&requested["status"], &requested["attempts"], &requested["requested_by"]), (&json!("queued"), &json!(0), &json!("test-member")));
        scene.app.drain().await;

        let received = scene.provider.take_requests();
        let [request] = &received[..] else { panic!("{received:?}") };
        assert_eq!((request.path.as_str(), request.key.as_str()), ("/v1/chat/completions", TENANT_KEY));
        let expected = json!({"model": "gpt-4o", "messages": messages("Be terse."), "temperature": 0.25, "max_tokens": 300, "tools": [tool]});
        assert_eq!(request.body, expected);

        let ended = scene.action(&requested).await;
        assert_eq!((&ended["status"], &ended["error"], &ended["attempts"]), (&json!("succeeded"), &Value::Null, &json!(1)));
        let after = scene.trace_detail(&trace).await;
        let spans = after["spans"].as_array().unwrap();
        assert_eq!(spans.len(), 2);
        assert_eq!(spans[0], before["spans"][0], "the original span is unchanged");
        let (original, remediated) = (&spans[0], &spans[1]);
        assert_eq!(remediated["id"], ended["remediated_span_id"]);
        assert_eq!(ended["span_id"], original["id"]);
        for (field, value) in [
            ("type", json!("llm")), ("name", json!("answer")), ("model", json!("gpt-4o")), ("output", json!(BETTER_OUTPUT)),
            ("error", Value::Null), ("input", original["input"].clone()), ("prompt_tokens", json!(PROMPT_TOKENS)),
            ("completion_tokens", json!(COMPLETION_TOKENS)), ("parent_span_id", original["parent_span_id"].clone()),
            ("start_time", json!("2026-06-15T12:01:00.000000Z")), ("latency_ms", json!(0)), ("cost", json!(0.0035)),
        ] {
            assert_eq!(remediated[field], value, "{field}");
        }
        let remediation = json!({"action_id": ended["id"], "action_type": "retry", "original_span_id": original["id"]});
        assert_eq!(remediated["metadata"]["remediation"], remediation);
        assert_eq!(ended["cost"], 0.0035);
        assert_eq!((&after["prompt_tokens_total"], &after["completion_tokens_total"]), (&json!(10 + PROMPT_TOKENS), &json!(5 + COMPLETION_TOKENS)));
        assert_eq!((&after["total_token_count"], &after["span_count"]), (&json!(15 + PROMPT_TOKENS + COMPLETION_TOKENS), &json!(2)));
        let cost = |it: &Value| it.as_f64().unwrap();
        assert!((cost(&after["cost"]) - cost(&before["cost"]) - 0.0035).abs() < 1e-12, "{after}");
        for field in ["name", "model", "started_at", "error"] {
            assert_eq!(after[field], before[field], "{field}");
        }
    }

    async fn fallback_model_is_requested_in_place_of_the_recorded_one(scene: Scene) {
        let trace = scene.trace().await;
        let ended = scene.execute(&trace, "fallback_model", json!({"action_config": {"model": "gpt-4o-mini", "temperature": 0}})).await;
        let request = scene.provider.take_requests().remove(0);
        assert_eq!(request.body, json!({"model": "gpt-4o-mini", "messages": messages("Be terse."), "temperature": 0.0}));
        let detail = scene.trace_detail(&trace).await;
        assert_eq!((&detail["spans"][1]["model"], &detail["model"]), (&json!("gpt-4o-mini"), &json!("gpt-4o")));
        assert_eq!((&detail["control_loop_depth"], &ended["cost"]), (&json!(0), &json!(0.00021)));
    }

    async fn prompt_modification_changes_the_system_message(scene: Scene) {
        for (config, system) in [
            (json!({"system_suffix": "Name the day."}), "Be terse.\n\nName the day."),
            (json!({"prompt_template": "You are kind."}), "You are kind."),
            (json!({"prompt_template": "{{system}} Be kind.", "system_suffix": "Name the day."}), "Be terse. Be kind.\n\nName the day."),
        ] {
            let trace = scene.trace().await;
            let ended = scene.execute(&trace, "prompt_modification", json!({"action_config": config})).await;
            assert_eq!((&ended["status"], &ended["action_config"]), (&json!("succeeded"), &config));
            assert_eq!(scene.provider.take_requests().remove(0).body["messages"], messages(system));
            let detail = scene.trace_detail(&trace).await;
            let input: Value = serde_json::from_str(detail["spans"][1]["input"].as_str().unwrap()).unwrap();
            assert_eq!(input, messages(system), "the span shows what was sent");
        }
    }

    /// The request offers tools, and the server never calls them: the tool call that the model requests is
    /// the output.
    async fn requested_tool_call_is_the_output(scene: Scene) {
        scene.provider.set_behaviours([Behaviour::CallsTool]);
        let trace = scene.trace().await;
        assert_eq!(scene.execute(&trace, "retry", json!({})).await["status"], "succeeded");
        let detail = scene.trace_detail(&trace).await;
        let output: Value = serde_json::from_str(detail["spans"][1]["output"].as_str().unwrap()).unwrap();
        assert_eq!(output[0]["tool_calls"][0]["function"]["name"], "lookup");
        assert_eq!((scene.provider.request_count(), &detail["span_count"]), (1, &json!(2)));
    }

    async fn claude_is_called_with_the_protocol_of_anthropic(scene: Scene) {
        scene.store_credential("anthropic").await;
        let trace = scene.trace_with(json!({"model": "claude-sonnet-4-5", "metadata": {"gen_ai.request.max_tokens": 64}})).await;
        let ended = scene.execute(&trace, "retry", json!({})).await;
        let request = scene.provider.take_requests().remove(0);
        assert_eq!((request.path.as_str(), request.key.as_str()), ("/v1/messages", TENANT_KEY));
        let user = json!({"role": "user", "content": [{"type": "text", "text": "Where is my parcel?"}]});
        assert_eq!(request.body, json!({"model": "claude-sonnet-4-5", "max_tokens": 64, "system": "Be terse.", "messages": [user]}));
        let detail = scene.trace_detail(&trace).await;
        assert_eq!((&ended["status"], &detail["spans"][1]["output"]), (&json!("succeeded"), &json!(BETTER_OUTPUT)));
        assert_eq!((&detail["spans"][1]["prompt_tokens"], &ended["cost"]), (&json!(PROMPT_TOKENS), &json!(0.0045)));
    }

    /// By default, the last model call is repeated. Outputs of other actions are repeated only if a person names
    /// them.
    async fn last_original_call_is_repeated_unless_a_span_is_named(scene: Scene) {
        let call = |name: &str, second: u32| json!({"name": name, "type": "llm", "model": "gpt-4o", "input": name, "output": BAD_OUTPUT,
            "start_time": format!("2026-06-15T11:59:{second:02}Z"), "end_time": format!("2026-06-15T11:59:{second:02}.5Z")});
        let tool = json!({"name": "search", "type": "tool", "input": "{}", "output": "none", "start_time": "2026-06-15T11:59:30Z"});
        let item = json!({"name": "chat", "spans": [call("first", 1), call("second", 5), tool]});
        let trace = scene.app.full_key().post("/v1/ingest", &item).await.ok()["id"].as_str().unwrap().to_owned();
        for _ in 0..2 {
            assert_eq!(scene.execute(&trace, "retry", json!({})).await["status"], "succeeded");
            assert_eq!(scene.provider.take_requests().remove(0).body["messages"], json!([{"role": "user", "content": "second"}]));
        }
        let detail = scene.trace_detail(&trace).await;
        let find = |name: &str| detail["spans"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap()["id"].clone();
        scene.execute(&trace, "retry", json!({"span_id": find("first")})).await;
        assert_eq!(scene.provider.take_requests().remove(0).body["messages"], json!([{"role": "user", "content": "first"}]));
        let tool = scene.execute(&trace, "fallback_model", json!({"span_id": find("search"), "action_config": {"model": "gpt-4o"}})).await;
        assert_eq!((&tool["status"], scene.provider.request_count()), (&json!("failed"), 0), "{tool}");
    }

    /// Usage that only a wrapper reports is added to the usage of the remediated span below it.
    async fn usage_of_a_wrapper_counts_beside_the_remediated_span(scene: Scene) {
        use tests::otlp::{Span, request};
        let start = tests::app::TEST_START_MICROS - 60_000_000;
        let wrapper = Span::new(7, 1, "agent", start).with("gen_ai.operation.name", "invoke_agent")
            .with("gen_ai.usage.input_tokens", 70).with("gen_ai.usage.output_tokens", 7);
        let call = Span::new(7, 2, "chat", start).under(1).with("gen_ai.operation.name", "chat")
            .with("gen_ai.request.model", "my-deployment").with("gen_ai.response.model", "gpt-4o").with("gen_ai.system", "openai")
            .with("gen_ai.input.messages", r#"[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]"#);
        scene.app.full_key().post("/v1/otlp/traces", &request([&wrapper, &call])).await.ok();
        let trace = scene.get("/v1/traces").await["traces"][0]["id"].as_str().unwrap().to_owned();
        assert_eq!(scene.trace_detail(&trace).await["prompt_tokens_total"], 70);
        let ended = scene.execute(&trace, "retry", json!({})).await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
        let request = scene.provider.take_requests().remove(0);
        assert_eq!(request.body, json!({"model": "my-deployment", "messages": [{"role": "user", "content": "Hi"}]}), "the requested model is repeated");
        let detail = scene.trace_detail(&trace).await;
        assert_eq!(detail["prompt_tokens_total"], 70 + PROMPT_TOKENS, "{detail}");
    }
}
