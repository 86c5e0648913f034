//! Each built-in evaluator of the specification returns a verdict, with the type that the table states.

use super::*;

/// The built-in evaluators of the specification with a config and the type that evaluates it; evaluators of both types occur
/// twice.
const EVALUATOR_CASES: [(&str, &str, &str); 28] = [
    ("answer_relevance", "{}", "llm"),
    ("bias", "{}", "llm"),
    ("citation_correctness", "{}", "llm"),
    ("context_utilization", "{}", "llm"),
    ("cost_threshold", r#"{"max_cost_usd": 0.5}"#, "rule"),
    ("factual_accuracy", "{}", "llm"),
    ("faithfulness", "{}", "llm"),
    ("function_call_correctness", "{}", "llm"),
    (
        "function_call_correctness",
        r#"{"expected_calls": [{"name": "find_order", "arguments": {"order": "A-17"}}]}"#,
        "rule",
    ),
    ("groundedness", "{}", "llm"),
    ("hallucination", "{}", "llm"),
    ("jailbreak", "{}", "llm"),
    ("json_schema_conformance", r#"{"schema": {"type": "object", "required": ["answer"]}}"#, "rule"),
    ("language_conformance", r#"{"language": "en"}"#, "rule"),
    ("latency_threshold", r#"{"max_latency_ms": 1000}"#, "rule"),
    ("multi_turn_consistency", "{}", "llm"),
    ("output_format_compliance", r#"{"format": "json"}"#, "rule"),
    ("pii_leakage", "{}", "rule"),
    ("prompt_injection", "{}", "llm"),
    ("prompt_injection_resistance", "{}", "llm"),
    ("refusal_appropriateness", "{}", "llm"),
    ("retrieval_precision", "{}", "llm"),
    ("retrieval_recall", "{}", "llm"),
    ("sentiment_match", "{}", "llm"),
    ("sentiment_match", r#"{"expected": "neutral"}"#, "rule"),
    ("tool_choice_correctness", "{}", "llm"),
    ("tool_choice_correctness", r#"{"expected_tool": "find_order"}"#, "rule"),
    ("toxicity", "{}", "llm"),
];

fn config(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

impl Scene {
    /// Stores a trace with every input that a built-in evaluator may read, after an earlier trace of its
    /// session.
    async fn store_full_trace(&self) -> Value {
        let key = self.app.full_key();
        let earlier =
            json!({"session_id": "s", "input": "I have a question about order A-17.", "output": "Ask it."});
        key.post("/v1/ingest", &earlier).await.ok();
        self.app.advance(60);
        let parameters =
            json!({"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]});
        let tool = json!({"type": "function", "function": {"name": "find_order", "parameters": parameters}});
        let item = json!({"session_id": "s", "name": "chat", "latency_ms": 800, "cost": 0.01,
        "input": "Where is the parcel of order A-17?",
        "output": r#"{"answer": "The parcel left the warehouse on Monday and arrives within three days [1]."}"#,
        "metadata": {"tools": [tool]},
        "spans": [
            {"name": "search", "type": "retrieval", "input": "parcel",
                "output": r#"[{"id": "1", "content": "Parcels arrive within three days."}]"#},
            {"name": "find_order", "type": "tool", "input": r#"{"order": "A-17"}"#, "output": r#"{"left": "Monday"}"#},
        ]});
        key.post("/v1/ingest", &item).await.ok()["id"].clone()
    }
}

on_both! {
    /// Code evaluates when the config names the expected values; otherwise a judge does.
    async fn every_builtin_evaluator_returns_a_verdict(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let trace = scene.store_full_trace().await;
        for (metric, options, kind) in EVALUATOR_CASES {
            let done = scene.evaluate_trace(&trace, metric, json!({"config": config(options)})).await;
            assert_eq!((&done["status"], &done["evaluator_type"]), (&json!("complete"), &json!(kind)), "{done}");
            let version = done["evaluator_version"].as_str().unwrap();
            assert!(version.starts_with(&format!("{metric}@")), "{done}");
            let (score, model, request_count) = match kind {
                "llm" => (json!(0.75), json!("gpt-4o"), 1),
                _ => (json!(1.0), Value::Null, 0),
            };
            assert_eq!((&done["score"], &done["label"], &done["judge_model"]), (&score, &json!("pass"), &model), "{done}");
            assert_eq!(scene.own.take_requests().len(), request_count, "{metric}");
        }
        let list = scene.get("/v1/evaluators?limit=200").await;
        let listed: Vec<&str> = list["evaluators"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert!(EVALUATOR_CASES.iter().all(|it| listed.contains(&it.0)), "{listed:?}");
        scene.stop().await;
    }

    /// A requested type is used whatever the config; a type that is not offered is rejected.
    async fn evaluator_type_can_be_requested(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let trace = scene.store_full_trace().await;
        let key = scene.app.full_key();
        for (metric, options, kind) in EVALUATOR_CASES {
            let both = EVALUATOR_CASES.iter().filter(|it| it.0 == metric).count() == 2;
            for requested in ["llm", "rule"] {
                let more = json!({"evaluator_type": requested, "config": config(options)});
                // Code needs expected values in the config; without them, tool calls are compared with the
                // schemas of their tools.
                let field = match (both, requested == kind, requested) {
                    (true, false, "rule") if metric != "function_call_correctness" => "config.",
                    (false, false, _) => "evaluator_type",
                    _ => {
                        let done = scene.evaluate_trace(&trace, metric, more).await;
                        assert_eq!((&done["status"], &done["evaluator_type"]), (&json!("complete"), &json!(requested)), "{done}");
                        assert_eq!(scene.own.take_requests().len(), usize::from(requested == "llm"), "{metric}");
                        continue;
                    }
                };
                let mut body = json!({"trace_id": trace, "metric_name": metric});
                body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                let refused = key.post("/v1/eval", &body).await;
                refused.is(422, "validation_failed");
                assert!(refused.json()["fields"][0]["field"].as_str().unwrap().starts_with(field), "{}", refused.text());
            }
        }
        assert_eq!(scene.own.request_count(), 0);
        scene.stop().await;
    }
}
