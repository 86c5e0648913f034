//! External evaluations that arrive with spans over OpenTelemetry.

use serde_json::{Value, json};
use tests::on_both_databases;

use super::{create_rule, evaluations};

/// Builds an export of one span of this trace with these attributes and events.
fn export(trace: &str, span: u64, attributes: Value, events: Value) -> Value {
    let at = tests::app::TEST_START_MICROS * 1_000;
    let span = json!({"traceId": trace, "spanId": format!("{span:016x}"), "name": "s", "startTimeUnixNano": at.to_string(),
        "endTimeUnixNano": (at + 5_000_000).to_string(), "attributes": attributes, "events": events});
    json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
}

fn attribute(key: &str, value: Value) -> Value {
    json!({"key": key, "value": value})
}

on_both_databases! {
    async fn external_evaluations_are_stored_once_without_quota(app: TestApp) {
        let key = app.full_key();
        let event = |name: &str, score: f64| json!({"name": "gen_ai.evaluation.result", "timeUnixNano": "0", "attributes": [
            attribute("gen_ai.evaluation.name", json!({"stringValue": name})),
            attribute("gen_ai.evaluation.score.value", json!({"doubleValue": score})),
            attribute("gen_ai.evaluation.score.label", json!({"stringValue": "relevant"})),
            attribute("gen_ai.evaluation.explanation", json!({"stringValue": "It is about the question."}))]});
        let trace = "5e".repeat(16);
        let body = export(&trace, 1, json!([]), json!([event("Relevance", 4.5), event("Relevance", 2.0)]));
        for _ in 0..2 {
            key.post("/v1/otlp/traces", &body).await.ok();
        }
        // A late span of the same trace has its own evaluation.
        key.post("/v1/otlp/traces", &export(&trace, 2, json!([]), json!([event("Fluency", 1.0)]))).await.ok();
        let rows = evaluations(&key, "").await;
        assert_eq!(rows.len(), 3, "{rows:?}");
        let fluency = rows.iter().find(|it| it["metric_name"] == "Fluency").unwrap();
        assert_eq!((&fluency["project_id"], &fluency["score"]), (&json!(app.project), &json!(1.0)));
        let first = rows.iter().find(|it| it["score"] == 4.5).unwrap();
        let id = format!("{}-{}-{}-{}-{}", &trace[..8], &trace[8..12], &trace[12..16], &trace[16..20], &trace[20..]);
        let detail = key.get(&format!("/v1/traces/{id}")).await.ok();
        let spans = detail["spans"].as_array().unwrap();
        let span = spans.iter().find(|it| it["otel_span_id"] == format!("{:016x}", 1)).unwrap();
        assert_eq!(first, &json!({"id": first["id"], "trace_id": id, "project_id": app.project, "span_id": span["id"],
            "metric_name": "Relevance", "evaluator_type": "llm", "evaluator_version": "external", "status": "complete", "context": "fresh",
            "score": 4.5, "label": "relevant", "reasoning": "It is about the question.", "error": null, "rule_id": null, "bulk_id": null,
            "source_action_id": null, "original_evaluation_id": null, "model_tier": null, "judge_model": null, "prompt_tokens": null,
            "completion_tokens": null, "cost": null, "created_at": first["created_at"], "completed_at": first["created_at"]}));
        let me = key.get("/v1/me").await.ok();
        assert_eq!(me["usage"]["llm_evaluations"], 0);
        assert_eq!(key.get(&format!("/v1/eval/{}", first["id"].as_str().unwrap())).await.ok(), *first);
        // A rule evaluates the trace independently of them.
        let rule = create_rule(app, json!({})).await;
        key.post("/v1/otlp/traces", &export(&"6e".repeat(16), 1, json!([]), json!([event("latency_threshold", 0.0)]))).await.ok();
        app.advance(6);
        app.drain().await;
        assert_eq!(evaluations(&key, &format!("rule_id={rule}")).await.len(), 2, "one evaluation per trace");
    }
}
