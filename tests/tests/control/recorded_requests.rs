//! Requests rebuilt from spans that real SDKs recorded.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use tests::expectation::{read_json, root, text};

use crate::{scene::Scene, with_provider};

/// Posts a captured scenario, and returns the trace of its first model call with that span.
async fn post(scene: &Scene, scenario: &Path) -> Vec<(String, Value)> {
    let expect = read_json(&scenario.join("expect.json"));
    let key = scene.app.full_key();
    for request in expect["requests"].as_array().unwrap() {
        let file = request.as_str().unwrap();
        let number = file.split('.').next().unwrap();
        let meta = read_json(&scenario.join(format!("{number}.meta.json")));
        let body = std::fs::read(scenario.join(file)).unwrap();
        let mut request = key
            .request(Method::POST, "/v1/otlp/traces")
            .header("content-type", text(&meta["content_type"]))
            .body(body);
        if let Some(encoding) = meta["content_encoding"].as_str() {
            request = request.header("content-encoding", encoding);
        }
        key.send(request).await.ok();
    }
    let mut calls = Vec::new();
    for trace in scene.get("/v1/traces?limit=200").await["traces"].as_array().unwrap() {
        let trace = text(&trace["id"]);
        let detail = scene.trace_detail(&trace).await;
        let spans = detail["spans"].as_array().unwrap().iter().filter(|it| it["type"] == "llm");
        calls.extend(spans.map(|it| (trace.clone(), it.clone())));
    }
    assert!(!calls.is_empty(), "{}: no model call", scenario.display());
    calls
}

/// Returns the roles of messages, in order.
fn roles(body: &Value) -> Vec<&str> {
    body["messages"].as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect()
}

/// Retries the last model call of each captured scenario of these SDKs. Returns the request bodies.
async fn retried(scene: &Scene, scenarios: &[&str]) -> Vec<(String, Value)> {
    for provider in ["anthropic", "openai_compatible"] {
        scene.store_credential(provider).await;
    }
    let mut bodies = Vec::new();
    for name in scenarios {
        let calls = post(scene, &root().join(name)).await;
        let Some((trace, span)) =
            calls.iter().rev().find(|(_, it)| !it["output"].is_null() && !it["model"].is_null())
        else {
            panic!("{name}: no call with an output")
        };
        let action = scene.execute(trace, "retry", json!({"span_id": span["id"]})).await;
        assert_eq!(action["status"], "succeeded", "{name}: {action} {span}");
        let request = scene.provider.take_requests().remove(0);
        bodies.push(((*name).to_owned(), request.body));
        for trace in scene.get("/v1/traces?limit=200").await["traces"].as_array().unwrap() {
            scene.app.full_key().delete(&format!("/v1/traces/{}", text(&trace["id"]))).await;
        }
    }
    bodies
}

/// Asserts that every tool result follows a message that calls its tool, as both protocols require.
fn has_consistent_tool_calls(name: &str, body: &Value) {
    let mut called: Vec<String> = Vec::new();
    for message in body["messages"].as_array().unwrap() {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            assert!(call["function"]["arguments"].is_string(), "{name}: {call}");
            assert_eq!(call["type"], "function", "{name}: {call}");
            assert!(call["id"].as_str().is_some_and(|it| !it.is_empty()), "{name}: {call}");
            called.push(text(&call["id"]));
        }
        if message["role"] == "tool" {
            assert!(called.contains(&text(&message["tool_call_id"])), "{name}: {message} in {body}");
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("tool_use") => called.push(text(&block["id"])),
                Some("tool_result") => {
                    assert!(called.contains(&text(&block["tool_use_id"])), "{name}: {block} in {body}")
                }
                _ => {}
            }
        }
    }
}

with_provider! {
    async fn simple_chats_of_sdks_are_repeated_as_recorded(scene: Scene) {
        let bodies = retried(scene, &[
            "otel-openai-v2/simple_chat", "traceloop-openai/simple_chat", "openinference-openai/simple_chat", "openlit/simple_chat",
            "langfuse/simple_chat", "langsmith/simple_chat", "litellm-otel/simple_chat", "vercel-ai5-json/simple_chat", "vercel-ai7-json/simple_chat",
            "logfire-pydantic-ai/simple_chat", "logfire-pydantic-ai1/simple_chat", "traceloop-langchain/simple_chain", "openinference-langchain/simple_chain",
            "traceloop-anthropic/simple_chat", "openinference-anthropic/simple_chat", "openlit-anthropic/simple_chat", "agents-logfire/simple_chat",
        ]).await;
        for (name, body) in &bodies {
            let roles = roles(body);
            assert_eq!(roles.last(), Some(&"user"), "{name}: {body}");
            assert!(roles.iter().all(|it| ["system", "developer", "user", "assistant"].contains(it)), "{name}: {body}");
            let is_claude = body["model"].as_str().unwrap().contains("claude");
            assert!(body.get("max_tokens").is_some_and(Value::is_u64) || !is_claude, "{name}: {body}");
        }
    }

    async fn conversations_with_tools_keep_calls_results_and_definitions(scene: Scene) {
        let bodies = retried(scene, &[
            "otel-openai-v2/tools_multi_turn", "langfuse/tools_multi_turn", "openinference-anthropic/tools_multi_turn",
            "logfire-pydantic-ai/tools_multi_turn", "vercel-ai7-json/tools_multi_step", "openinference-langchain/agent_tools", "traceloop-langchain/agent_tools",
        ]).await;
        for (name, body) in &bodies {
            println!("{name}: {body}");
            has_consistent_tool_calls(name, body);
            let text = body["messages"].to_string();
            assert!(text.contains("tool_call_id") || text.contains("tool_result"), "{name}: {body}");
        }
    }
}
