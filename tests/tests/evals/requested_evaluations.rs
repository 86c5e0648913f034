//! Evaluations requested by a caller.

use api::Plan;
use serde_json::{Value, json};
use tests::on_both_databases;

use super::{evaluations, timed, trace};

on_both_databases! {
    async fn requested_evaluation_goes_from_pending_to_complete(app: TestApp) {
        let key = app.full_key();
        let id = timed(&key, 120).await;
        let body = json!({"trace_id": id, "metric_name": "latency_threshold", "config": {"max_latency_ms": 100}});
        let reply = key.post("/v1/eval", &body).await;
        assert_eq!(reply.status, 202, "{}", reply.text());
        let asked = reply.ok();
        let evaluation = asked["id"].as_str().unwrap();
        assert_eq!(asked, json!({"id": evaluation, "trace_id": id, "project_id": app.project, "span_id": null,
            "metric_name": "latency_threshold", "evaluator_type": "rule", "evaluator_version": asked["evaluator_version"],
            "status": "pending", "context": "fresh", "score": null, "label": null, "reasoning": null, "error": null,
            "rule_id": null, "bulk_id": null, "source_action_id": null, "original_evaluation_id": null, "model_tier": null,
            "judge_model": null, "prompt_tokens": null, "completion_tokens": null, "cost": null,
            "created_at": "2026-06-15T12:00:00.000000Z", "completed_at": null}));
        assert!(asked["evaluator_version"].as_str().unwrap().starts_with("latency_threshold@"), "{asked}");
        app.advance(1);
        app.drain().await;
        let done = key.get(&format!("/v1/eval/{evaluation}")).await.ok();
        assert_eq!((&done["status"], &done["score"], &done["label"], &done["error"]), (&json!("complete"), &json!(0.0), &json!("fail"), &Value::Null));
        assert_eq!(done["completed_at"], "2026-06-15T12:00:01.000000Z");
        assert!(done["reasoning"].as_str().unwrap().contains("120"), "{done}");
        assert_eq!(evaluations(&key, &format!("trace_id={id}")).await, [done]);
    }

    /// An evaluation without its input fails with a reason and never has a score.
    async fn evaluation_with_missing_input_fails_with_reason(app: TestApp) {
        let key = app.full_key();
        let id = trace(&key, json!({"name": "t"})).await;
        key.post("/v1/eval", &json!({"trace_id": id, "metric_name": "latency_threshold", "config": {"max_latency_ms": 1}})).await.ok();
        app.drain().await;
        let done = &evaluations(&key, "").await[0];
        assert_eq!((&done["status"], &done["score"], &done["label"]), (&json!("failed"), &Value::Null, &Value::Null));
        assert!(done["error"].as_str().unwrap().contains("latency"), "{done}");
    }

    async fn span_evaluation_reads_only_its_span(app: TestApp) {
        let key = app.full_key();
        let spans = json!([{"name": "root", "id": "a", "latency_ms": 500}, {"name": "child", "id": "b", "parent_span_id": "a", "latency_ms": 20}]);
        let id = trace(&key, json!({"name": "t", "latency_ms": 500, "spans": spans})).await;
        let detail = key.get(&format!("/v1/traces/{id}")).await.ok();
        let span = detail["spans"].as_array().unwrap().iter().find(|it| it["name"] == "child").unwrap()["id"].clone();
        let config = json!({"max_latency_ms": 100});
        for (span, score) in [(Value::Null, 0.0), (span.clone(), 1.0)] {
            let body = json!({"trace_id": id, "span_id": span, "metric_name": "latency_threshold", "config": config});
            let asked = key.post("/v1/eval", &body).await.ok();
            assert_eq!(asked["span_id"], span);
            app.drain().await;
            let done = key.get(&format!("/v1/eval/{}", asked["id"].as_str().unwrap())).await.ok();
            assert_eq!(done["score"], score, "{done}");
        }
        let foreign_span = json!({"trace_id": id, "span_id": app.project, "metric_name": "latency_threshold", "config": config});
        key.post("/v1/eval", &foreign_span).await.is(404, "not_found");
    }

    async fn invalid_evaluation_request_is_rejected(app: TestApp) {
        let key = app.full_key();
        let id = timed(&key, 1).await;
        let good = json!({"trace_id": id, "metric_name": "latency_threshold", "config": {"max_latency_ms": 1}});
        let with = |name: &str, value: Value| {
            let mut body = good.clone();
            body[name] = value;
            body
        };
        for (body, field) in [
            (with("metric_name", json!("nonsense")), "metric_name"),
            (with("metric_name", json!("")), "metric_name"),
            (with("evaluator_type", json!("llm")), "evaluator_type"),
            (with("evaluator_type", json!("magic")), "evaluator_type"),
            (with("model_tier", json!("gold")), "model_tier"),
            (with("config", json!({})), "config.max_latency_ms"),
            (with("config", json!({"max_latency_ms": "soon"})), "config.max_latency_ms"),
            (with("config", json!({"max_latency_ms": -1})), "config.max_latency_ms"),
            (with("config", json!({"max_latency_ms": 1, "threshold": 2})), "config.threshold"),
            (with("config", json!({"max_latency_ms": 1, "max_latencies": 2})), "config.max_latencies"),
        ] {
            let reply = key.post("/v1/eval", &body).await;
            reply.is(422, "validation_failed");
            let fields: Vec<Value> = reply.json()["fields"].as_array().unwrap().iter().map(|it| it["field"].clone()).collect();
            assert!(fields.contains(&json!(field)), "{body}: {fields:?}");
        }
        for body in [json!({}), json!({"trace_id": "x", "metric_name": "y"}), with("config", json!([])), with("trace_id", Value::Null)] {
            key.post("/v1/eval", &body).await.is(400, "invalid_body");
        }
        key.post("/v1/eval", &with("trace_id", json!(app.project))).await.is(404, "not_found");
        assert_eq!(evaluations(&key, "").await, Vec::<Value>::new());
    }

    async fn evaluation_list_is_filtered_and_paged(app: TestApp) {
        let key = app.full_key();
        let mut traces = Vec::new();
        for i in 0..7 {
            let id = timed(&key, i * 50).await;
            let body = json!({"trace_id": id, "metric_name": "latency_threshold", "config": {"max_latency_ms": 100}});
            key.post("/v1/eval", &body).await.ok();
            app.advance(1);
            traces.push(id);
        }
        let project = app.project;
        for (query, count) in [
            ("status=pending".to_owned(), 7), ("status=complete".to_owned(), 0),
            (format!("project_id={project}"), 7), (format!("trace_id={}", traces[3]), 1), (format!("rule_id={project}"), 0),
            ("metric_name=latency_threshold".to_owned(), 7), ("metric_name=bias".to_owned(), 0),
            ("evaluator_type=rule&context=fresh".to_owned(), 7), ("context=remediation".to_owned(), 0),
            ("from=2026-06-15T12:00:02Z&to=2026-06-15T12:00:04Z".to_owned(), 3),
        ] {
            assert_eq!(evaluations(&key, &query).await.len(), count, "{query}");
        }
        app.drain().await;
        for (query, count) in [("label=pass", 3), ("label=fail", 4), ("min_score=0.5", 3), ("max_score=0.5", 4), ("min_score=0&max_score=1", 7)] {
            assert_eq!(evaluations(&key, query).await.len(), count, "{query}");
        }
        let whole = evaluations(&key, "").await;
        let mut paged = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = key.get(&format!("/v1/eval?limit=2{cursor}")).await.ok();
            paged.extend(page["evaluations"].as_array().unwrap().clone());
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(paged, whole);
        assert!(whole.windows(2).all(|it| it[0]["created_at"].as_str() > it[1]["created_at"].as_str()));
        for query in ["status=gone", "evaluator_type=x", "context=x", "min_score=x", "min_score=1&max_score=0", "rule_id=7", "limit=0", "from=x"] {
            key.get(&format!("/v1/eval?{query}")).await.is(400, "invalid_query");
        }
        key.get("/v1/eval?cursor=nonsense").await.is(400, "invalid_cursor");
        key.get("/v1/eval/nonsense").await.is(400, "invalid_query");
        key.get(&format!("/v1/eval/{project}")).await.is(404, "not_found");
    }

    /// A removed trace takes its evaluations with it, pending ones too.
    async fn removed_trace_removes_its_evaluations(app: TestApp) {
        let key = app.full_key();
        let id = timed(&key, 1).await;
        let body = json!({"trace_id": id, "metric_name": "latency_threshold", "config": {"max_latency_ms": 100}});
        let asked = key.post("/v1/eval", &body).await.ok();
        app.session(api::Role::Owner).delete(&format!("/v1/traces/{id}")).await.ok();
        assert!(app.drain().await > 0);
        key.get(&format!("/v1/eval/{}", asked["id"].as_str().unwrap())).await.is(404, "not_found");
        assert_eq!(evaluations(&key, "").await, Vec::<Value>::new());
    }

    async fn evaluations_of_another_tenant_are_not_found(app: TestApp) {
        let key = app.full_key();
        let id = timed(&key, 1).await;
        let body = json!({"trace_id": id, "metric_name": "latency_threshold", "config": {"max_latency_ms": 100}});
        let asked = key.post("/v1/eval", &body).await.ok();
        let (_, other) = app.other_tenant(Plan::Team).await;
        other.get(&format!("/v1/eval/{}", asked["id"].as_str().unwrap())).await.is(404, "not_found");
        other.post("/v1/eval", &body).await.is(404, "not_found");
        assert_eq!(evaluations(&other, "").await, Vec::<Value>::new());
    }

    /// Code evaluators use no quota, on any plan.
    async fn code_evaluations_use_no_quota(app: TestApp) {
        app.set_plan(Plan::Starter).await;
        let key = app.full_key();
        let id = timed(&key, 1).await;
        let body = json!({"trace_id": id, "metric_name": "latency_threshold", "config": {"max_latency_ms": 100}});
        for _ in 0..3 {
            key.post("/v1/eval", &body).await.ok();
        }
        let me = app.session(api::Role::Viewer).get("/v1/me").await.ok();
        assert_eq!(me["usage"]["llm_evaluations"], 0, "{me}");
    }
}
