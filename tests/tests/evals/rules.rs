//! Eval rules: creation, changes, and their effect on ready traces.

use api::{Plan, Role};
use serde_json::{Value, json};
use tests::{On, TestApp, on_both_databases};

use super::{create_rule, decision, evaluations, rule, timed, trace};

/// Builds an export of one ended span of this trace.
fn span(trace: &str, id: u64, parent: Option<u64>) -> Value {
    let at = (tests::app::TEST_START_MICROS + id as i64) * 1_000;
    let mut span = json!({"traceId": trace, "spanId": format!("{id:016x}"), "name": "s", "startTimeUnixNano": at.to_string(),
        "endTimeUnixNano": (at + 5_000_000).to_string()});
    if let Some(parent) = parent {
        span["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
}

on_both_databases! {
    async fn created_rule_has_defaults(app: TestApp) {
        let key = app.full_key();
        let reply = key.post("/v1/eval-rules", &rule(app, json!({}))).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        let made = reply.ok();
        let at = "2026-06-15T12:00:00.000000Z";
        assert_eq!(made, json!({"id": made["id"], "project_id": app.project, "metric_name": "latency_threshold", "evaluator_type": "rule",
            "config": {"max_latency_ms": 100}, "enabled": true, "model_tier": "cheap", "min_score_drop": 0.0, "filter": {},
            "sample_rate": 1.0, "paused_reason": null, "paused_detail": null, "created_at": at, "updated_at": at}));
        let path = format!("/v1/eval-rules/{}", made["id"].as_str().unwrap());
        assert_eq!(key.get(&path).await.ok(), made);
        app.advance(1);
        let second = key.post("/v1/eval-rules", &rule(app, json!({"enabled": false, "filter": {"model": "m", "error": false}, "sample_rate": 0.5}))).await.ok();
        assert_eq!((&second["filter"], &second["sample_rate"], &second["enabled"]), (&json!({"model": "m", "error": false}), &json!(0.5), &json!(false)));
        let list = key.get("/v1/eval-rules").await.ok();
        assert_eq!((&list["eval_rules"], &list["has_more"], &list["next_cursor"]), (&json!([second, made]), &json!(false), &Value::Null));
        assert_eq!(key.get(&format!("/v1/eval-rules?project_id={}&limit=1", app.project)).await.ok()["eval_rules"], json!([second]));
        assert_eq!(key.get(&format!("/v1/eval-rules?project_id={}", app.tenant)).await.ok()["eval_rules"], json!([]));
        assert_eq!(key.delete(&path).await.status, 204);
        key.get(&path).await.is(404, "not_found");
        key.delete(&path).await.is(404, "not_found");
    }

    /// The six rules of the specification.
    async fn min_score_drop_follows_the_specification(app: TestApp) {
        let key = app.full_key();
        let owner = app.session(Role::Owner);
        // An absent value becomes 0.0, null stays null, and a number is kept; every response shows it.
        for (given, kept) in [(json!({}), json!(0.0)), (json!({"min_score_drop": null}), Value::Null), (json!({"min_score_drop": 0.05}), json!(0.05)),
            (json!({"min_score_drop": 0}), json!(0.0))] {
            let reply = key.post("/v1/eval-rules", &rule(app, given)).await.ok();
            assert_eq!(reply["min_score_drop"], kept);
            let path = format!("/v1/eval-rules/{}", reply["id"].as_str().unwrap());
            assert_eq!(key.get(&path).await.ok()["min_score_drop"], kept);
            let patch = async |body: Value| owner.send(owner.request(reqwest::Method::PATCH, &path).json(&body)).await;
            // An absent field stays unchanged.
            assert_eq!(patch(json!({"enabled": false})).await.ok()["min_score_drop"], kept);
            assert_eq!(patch(json!({"min_score_drop": 0.2})).await.ok()["min_score_drop"], 0.2);
            assert_eq!(patch(json!({"min_score_drop": null})).await.ok()["min_score_drop"], Value::Null);
            patch(json!({"min_score_drop": -0.01})).await.is(422, "validation_failed");
            patch(json!({"min_score_drop": "much"})).await.is(400, "invalid_body");
            assert_eq!(key.get(&path).await.ok()["min_score_drop"], Value::Null);
        }
        key.post("/v1/eval-rules", &rule(app, json!({"min_score_drop": -1}))).await.is(422, "validation_failed");
        let listed = key.get("/v1/eval-rules").await.ok();
        assert!(listed["eval_rules"].as_array().unwrap().iter().all(|it| it.as_object().unwrap().contains_key("min_score_drop")));
    }

    async fn invalid_rule_is_rejected(app: TestApp) {
        let key = app.full_key();
        for (more, field) in [
            (json!({"metric_name": "nonsense"}), "metric_name"), (json!({"evaluator_type": "llm"}), "evaluator_type"),
            (json!({"evaluator_type": "magic"}), "evaluator_type"), (json!({"config": {}}), "config.max_latency_ms"),
            (json!({"model_tier": "gold"}), "model_tier"), (json!({"sample_rate": 1.5}), "sample_rate"), (json!({"sample_rate": -0.1}), "sample_rate"),
            (json!({"filter": {"tag": ""}}), "filter.tag"),
        ] {
            let reply = key.post("/v1/eval-rules", &rule(app, more.clone())).await;
            reply.is(422, "validation_failed");
            assert_eq!(reply.json()["fields"][0]["field"], field, "{more}");
        }
        for body in [json!({}), json!({"project_id": app.project}), rule(app, json!({"filter": 7})), rule(app, json!({"enabled": "yes"}))] {
            key.post("/v1/eval-rules", &body).await.is(400, "invalid_body");
        }
        key.post("/v1/eval-rules", &rule(app, json!({"project_id": app.tenant}))).await.is(404, "not_found");
        assert_eq!(key.get("/v1/eval-rules").await.ok()["eval_rules"], json!([]));
    }

    /// Traces from JSON ingest are ready immediately; each is evaluated once.
    async fn rule_fires_once_per_trace(app: TestApp) {
        let key = app.full_key();
        let before = timed(&key, 500).await;
        app.drain().await;
        app.advance(1);
        let id = create_rule(app, json!({})).await;
        let (slow, fast) = (timed(&key, 500).await, timed(&key, 50).await);
        app.drain().await;
        let rows = evaluations(&key, &format!("rule_id={id}")).await;
        assert_eq!(rows.len(), 2, "{rows:?}");
        let of = |trace: &str| rows.iter().find(|it| it["trace_id"] == trace).unwrap();
        assert_eq!((&of(&slow)["label"], &of(&fast)["label"]), (&json!("fail"), &json!("pass")));
        assert!(rows.iter().all(|it| it["status"] == "complete" && it["context"] == "fresh" && it["bulk_id"].is_null()));
        app.advance(600);
        app.drain().await;
        assert_eq!(evaluations(&key, "").await.len(), 2);
        assert_eq!(decision(&key, &id, &slow).await["decision"], "queued");
        assert_eq!(decision(&key, &id, &slow).await["evaluation_id"], of(&slow)["id"]);
        // A trace that was ready before the rule existed is not evaluated, and the decision has the reason.
        assert_eq!(decision(&key, &id, &before).await["decision"], "disabled");
    }

    /// A trace from OpenTelemetry is evaluated when it is ready, complete, and once, even if late spans make
    /// it ready again.
    async fn rule_evaluates_otlp_trace_when_ready(app: TestApp) {
        let key = app.full_key();
        let rule = create_rule(app, json!({"config": {"max_latency_ms": 1}})).await;
        let trace = "7f".repeat(16);
        let send = async |body: Value| key.post("/v1/otlp/traces", &body).await.ok();
        send(span(&trace, 2, Some(1))).await;
        app.drain().await;
        app.advance(6);
        app.drain().await;
        let id = format!("{}-{}-{}-{}-{}", &trace[..8], &trace[8..12], &trace[12..16], &trace[16..20], &trace[20..]);
        assert_eq!(evaluations(&key, "").await.len(), 0, "a trace without a root is not ready yet");
        assert_eq!(decision(&key, &rule, &id).await["decision"], "not_ready");
        send(span(&trace, 1, None)).await;
        app.drain().await;
        assert_eq!(evaluations(&key, "").await.len(), 0);
        app.advance(5);
        app.drain().await;
        assert_eq!(evaluations(&key, "").await.len(), 1);
        assert_eq!(decision(&key, &rule, &id).await["decision"], "queued");
        app.advance(60);
        send(span(&trace, 3, Some(1))).await;
        app.advance(6);
        app.drain().await;
        assert_eq!(evaluations(&key, "").await.len(), 1);
        assert_eq!(decision(&key, &rule, &id).await["decision"], "duplicate");
    }

    /// With too many rules for conditions in the query, each rule still evaluates only its matching traces.
    async fn many_rules_each_evaluate_their_traces(app: TestApp) {
        let key = app.full_key();
        for name in 0..40 {
            create_rule(app, json!({"filter": {"name": name.to_string()}})).await;
        }
        let traces: Vec<Value> = (0..50).map(|it| json!({"name": it.to_string(), "latency_ms": 1})).collect();
        key.post("/v1/ingest/batch", &json!({"traces": traces})).await.ok();
        app.drain().await;
        assert_eq!(evaluations(&key, "status=complete").await.len(), 40);
    }

    async fn rule_filter_and_sample_select_traces(app: TestApp) {
        let key = app.full_key();
        let rules = [
            (json!({"model": "m-1"}), vec![0, 3]), (json!({"name": "b"}), vec![1]), (json!({"error": true}), vec![1]),
            (json!({"error": false}), vec![0, 2, 3, 4]), (json!({"tag": "env"}), vec![0, 2]), (json!({"tag": "env:prod"}), vec![0]),
            (json!({"span_type": "tool"}), vec![2]), (json!({"model": "m-1", "span_type": "tool"}), vec![]), (json!({"tag": "a:b:c"}), vec![3]),
            (json!({"tag": "50%_!\"x"}), vec![4]), (json!({"tag": "50%_!\"x:ü"}), vec![4]), (json!({"tag": "5"}), vec![]),
        ];
        let mut ids = Vec::new();
        for (filter, _) in &rules {
            ids.push(create_rule(app, json!({"filter": filter})).await);
        }
        let items = [
            json!({"name": "a", "model": "m-1", "tags": {"env": "prod"}, "latency_ms": 1}),
            json!({"name": "b", "model": "m-2", "error": "no", "latency_ms": 1}),
            json!({"name": "c", "tags": {"env": "test"}, "latency_ms": 1, "spans": [{"name": "s", "type": "tool"}]}),
            json!({"name": "d", "model": "m-1", "tags": {"a": "b:c"}, "latency_ms": 1, "spans": [{"name": "s", "type": "llm", "model": "m-1"}]}),
            json!({"name": "e", "tags": {"50%_!\"x": "ü"}, "latency_ms": 1}),
        ];
        let mut traces = Vec::new();
        for item in items {
            traces.push(trace(&key, item).await);
        }
        app.drain().await;
        for ((filter, selected), id) in rules.iter().zip(&ids) {
            for (i, trace) in traces.iter().enumerate() {
                let decided = decision(&key, id, trace).await;
                let word = if selected.contains(&i) { "queued" } else { "filtered" };
                assert_eq!(decided["decision"], word, "{filter} {i}: {decided}");
                assert!(!decided["detail"].as_str().unwrap().is_empty());
            }
            assert_eq!(evaluations(&key, &format!("rule_id={id}")).await.len(), selected.len(), "{filter}");
        }
        let never = create_rule(app, json!({"sample_rate": 0})).await;
        let some = create_rule(app, json!({"sample_rate": 0.5})).await;
        let mut words = std::collections::BTreeMap::<String, usize>::new();
        for _ in 0..40 {
            let id = timed(&key, 1).await;
            app.drain().await;
            assert_eq!(decision(&key, &never, &id).await["decision"], "sampled_out");
            *words.entry(decision(&key, &some, &id).await["decision"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        assert!(words["queued"] > 5 && words["sampled_out"] > 5, "{words:?}");
    }

    async fn disabled_rule_does_not_fire(app: TestApp) {
        let key = app.full_key();
        let id = create_rule(app, json!({"enabled": false})).await;
        let first = timed(&key, 1).await;
        app.drain().await;
        assert_eq!(decision(&key, &id, &first).await["decision"], "disabled");
        app.advance(1);
        let path = format!("/v1/eval-rules/{id}");
        let changed = key.send(key.request(reqwest::Method::PATCH, &path).json(&json!({"enabled": true}))).await.ok();
        assert_eq!((&changed["enabled"], &changed["updated_at"]), (&json!(true), &json!("2026-06-15T12:00:01.000000Z")));
        let second = timed(&key, 1).await;
        app.drain().await;
        let words = [decision(&key, &id, &first).await["decision"].clone(), decision(&key, &id, &second).await["decision"].clone()];
        assert_eq!(words, [json!("disabled"), json!("queued")]);
    }

    async fn rule_test_stores_nothing(app: TestApp) {
        let key = app.full_key();
        let id = create_rule(app, json!({"enabled": false, "config": {"max_latency_ms": 100, "threshold": 0.5}})).await;
        let (slow, none) = (timed(&key, 500).await, trace(&key, json!({"name": "t"})).await);
        let path = format!("/v1/eval-rules/{id}/test");
        let tried = key.post(&path, &json!({"trace_id": slow})).await;
        assert_eq!(tried.status, 200);
        let tried = tried.ok();
        assert_eq!((&tried["status"], &tried["score"], &tried["label"], &tried["decision"]), (&json!("complete"), &json!(0.0), &json!("fail"), &json!("disabled")));
        let failed = key.post(&path, &json!({"trace_id": none})).await.ok();
        assert_eq!((&failed["status"], &failed["score"]), (&json!("failed"), &Value::Null));
        assert!(failed["error"].as_str().unwrap().contains("latency"), "{failed}");
        app.drain().await;
        assert_eq!(evaluations(&key, "").await, Vec::<Value>::new());
        key.post(&path, &json!({"trace_id": app.project})).await.is(404, "not_found");
        key.post(&path, &json!({})).await.is(400, "invalid_body");
        key.post(&format!("/v1/eval-rules/{}/test", app.project), &json!({"trace_id": slow})).await.is(404, "not_found");
    }

    async fn starter_plan_is_limited_to_three_rules(app: TestApp) {
        app.set_plan(Plan::Starter).await;
        let key = app.full_key();
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(create_rule(app, json!({})).await);
            app.advance(1);
        }
        key.post("/v1/eval-rules", &rule(app, json!({}))).await.is(402, "eval_rules_quota_exceeded");
        key.delete(&format!("/v1/eval-rules/{}", ids[0])).await.ok();
        ids.push(create_rule(app, json!({})).await);
        // A higher plan has no limit; rules beyond the limit of a lower one do not run, and say so.
        app.set_plan(Plan::Pro).await;
        app.advance(1);
        ids.push(create_rule(app, json!({})).await);
        app.set_plan(Plan::Starter).await;
        let last = key.get(&format!("/v1/eval-rules/{}", ids[4])).await.ok();
        assert_eq!(last["paused_reason"], "eval_rules_quota_exceeded", "{last}");
        assert!(last["paused_detail"].as_str().unwrap().contains("starter"), "{last}");
        let id = timed(&key, 1).await;
        app.drain().await;
        assert_eq!(decision(&key, &ids[4], &id).await["decision"], "paused");
        let path = format!("/v1/eval-rules/{}", ids[4]);
        let change = key.request(reqwest::Method::PATCH, &path).json(&json!({"enabled": false}));
        key.send(change).await.is(402, "eval_rules_quota_exceeded");
        key.post(&format!("{path}/test"), &json!({"trace_id": id})).await.is(402, "eval_rules_quota_exceeded");
        key.post(&format!("{path}/backfill"), &json!({})).await.is(402, "eval_rules_quota_exceeded");
        assert_eq!(decision(&key, &ids[1], &id).await["decision"], "queued");
        app.set_plan(Plan::Pro).await;
        assert_eq!(key.get(&format!("/v1/eval-rules/{}", ids[4])).await.ok()["paused_reason"], Value::Null);
    }
}

/// Two concurrent requests cannot both create the third rule.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_limit_holds_for_concurrent_requests() {
    for on in [On::Sqlite, On::Postgres] {
        let app = TestApp::with(on, Plan::Starter, &[]).await;
        let body = rule(&app, json!({}));
        let tries = (0..8).map(|_| {
            let (key, body) = (app.full_key(), body.clone());
            async move { key.post("/v1/eval-rules", &body).await.status }
        });
        let answers = futures::future::join_all(tries).await;
        assert_eq!(answers.iter().filter(|it| **it == 201).count(), 3, "{answers:?}");
        assert_eq!(answers.iter().filter(|it| **it == 402).count(), 5, "{answers:?}");
        app.stop().await;
    }
}
