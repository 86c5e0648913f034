//! LLM evaluations from the request to the result, over HTTP.

use super::*;

/// Stores a trace with an output.
async fn store_trace(scene: &Scene) -> String {
    let item = json!({"input": "What is the capital of France?", "output": "Paris.", "latency_ms": 5});
    scene.app.full_key().post("/v1/ingest", &item).await.ok()["id"].as_str().unwrap().to_owned()
}

/// Requests an evaluation of a new trace.
async fn request_evaluation(scene: &Scene) -> String {
    let body = json!({"trace_id": store_trace(scene).await, "metric_name": "answer_relevance"});
    let reply = scene.app.full_key().post("/v1/eval", &body).await;
    assert_eq!(reply.status, 202, "{}", reply.text());
    reply.ok()["id"].as_str().unwrap().to_owned()
}

async fn get_evaluation(scene: &Scene, id: &str) -> Value {
    scene.app.full_key().get(&format!("/v1/eval/{id}")).await.ok()
}

async fn used_quota(scene: &Scene) -> Value {
    scene.app.full_key().get("/v1/me").await.ok()["usage"]["llm_evaluations"].clone()
}

/// Creates a rule with an LLM evaluator. Returns its id.
async fn create_rule(scene: &Scene) -> String {
    let body =
        json!({"project_id": scene.app.project, "metric_name": "answer_relevance", "evaluator_type": "llm"});
    let reply = scene.app.full_key().post("/v1/eval-rules", &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.ok()["id"].as_str().unwrap().to_owned()
}

async fn get_rule(scene: &Scene, rule: &str) -> Value {
    scene.app.full_key().get(&format!("/v1/eval-rules/{rule}")).await.ok()
}

async fn decision(scene: &Scene, rule: &str, trace: &str) -> Value {
    let path = format!("/v1/eval-rules/{rule}/decisions?trace_id={trace}");
    scene.app.full_key().get(&path).await.ok()["decisions"][0].clone()
}

async fn team_scene(on: On) -> Scene {
    let scene = Scene::on(on, Plan::Team, &[]).await;
    scene.store_credential("openai", json!({})).await.ok();
    scene
}

on_both! {
    async fn llm_evaluation_stores_verdict_and_usage(on: On) {
        let scene = team_scene(on).await;
        let id = request_evaluation(&scene).await;
        assert_eq!(get_evaluation(&scene, &id).await["status"], "pending");
        assert_eq!(used_quota(&scene).await, 1);
        scene.app.drain().await;
        let done = get_evaluation(&scene, &id).await;
        assert_eq!((&done["status"], &done["score"], &done["label"], &done["reasoning"]),
            (&json!("complete"), &json!(0.75), &json!("pass"), &json!("It answers the question.")));
        assert_eq!((&done["evaluator_type"], &done["model_tier"], &done["judge_model"]), (&json!("llm"), &json!("cheap"), &json!("gpt-4o")));
        assert_eq!((&done["prompt_tokens"], &done["completion_tokens"]), (&json!(1000), &json!(100)));
        assert!(done["cost"].as_f64().is_some_and(|it| it > 0.0), "{done}");
        assert_eq!(used_quota(&scene).await, 1);
        let requests = scene.own.take_requests();
        assert_eq!(requests.len(), 1);
        assert!(requests[0].message_texts()[1].contains("Paris."));
        assert!(!requests[0].message_texts()[0].contains("Paris"), "the instructions contain data of the trace");
        scene.stop().await;
    }

    /// A temporary failure is retried by the queue.
    async fn temporary_judge_failure_is_retried(on: On) {
        let scene = team_scene(on).await;
        let busy = || Behaviour::Status(429, None, "slow down", "rate_limit_exceeded");
        scene.own.set_behaviours([busy(), busy(), Behaviour::Succeeds]);
        let id = request_evaluation(&scene).await;
        for _ in 0..30 {
            scene.app.drain().await;
            let row = get_evaluation(&scene, &id).await;
            if row["status"] == "complete" {
                break;
            }
            assert_eq!((&row["status"], &row["score"]), (&json!("pending"), &Value::Null));
            scene.app.advance(10);
        }
        assert_eq!(get_evaluation(&scene, &id).await["score"], 0.75);
        assert_eq!(scene.own.request_count(), 3);
        scene.stop().await;
    }

    /// Retries are limited, and the quota of a failed evaluation is released.
    async fn evaluation_fails_after_eight_judge_attempts(on: On) {
        let scene = team_scene(on).await;
        scene.own.set_behaviours([Behaviour::Status(429, Some("1"), "slow down", "rate_limit_exceeded")]);
        let id = request_evaluation(&scene).await;
        for _ in 0..200 {
            scene.app.drain().await;
            if get_evaluation(&scene, &id).await["status"] != "pending" {
                break;
            }
            scene.app.advance(60);
        }
        let done = get_evaluation(&scene, &id).await;
        assert_eq!((&done["status"], &done["score"], &done["label"]), (&json!("failed"), &Value::Null, &Value::Null));
        assert!(done["error"].as_str().unwrap().contains("after 8 attempts"), "{done}");
        assert_eq!((scene.own.request_count(), used_quota(&scene).await), (8, json!(0)));
        scene.stop().await;
    }

    async fn unparsable_judge_reply_fails_evaluation(on: On) {
        let scene = team_scene(on).await;
        for text in ["I like it.", r#"{"reasoning": "x", "score": 7}"#, r#"{"reasoning": "x", "score": null}"#, "", r#"{"score": 0.9"#] {
            scene.own.set_behaviours([Behaviour::RepliesWith(text.to_owned())]);
            let id = request_evaluation(&scene).await;
            scene.app.drain().await;
            let done = get_evaluation(&scene, &id).await;
            assert_eq!((&done["status"], &done["score"]), (&json!("failed"), &Value::Null), "{text}: {done}");
            assert!(done["error"].as_str().is_some_and(|it| it.len() > 20), "{done}");
            assert!(done["prompt_tokens"].as_i64() > Some(0), "the tokens of the failed requests are missing: {done}");
        }
        assert_eq!(used_quota(&scene).await, 0);
        scene.stop().await;
    }

    /// A rejected key pauses the rule with a reason; a new key resumes it.
    async fn rejected_key_pauses_rule_until_replaced(on: On) {
        let scene = team_scene(on).await;
        let rule = create_rule(&scene).await;
        scene.own.set_behaviours([Behaviour::Status(401, None, "invalid key", "invalid_api_key")]);
        let first = store_trace(&scene).await;
        scene.app.drain().await;
        let list = scene.app.full_key().get(&format!("/v1/eval?rule_id={rule}")).await.ok();
        let done = &list["evaluations"][0];
        assert_eq!(done["status"], "failed");
        assert!(done["error"].as_str().unwrap().contains("provider-credentials"), "{done}");
        assert!(!list.to_string().contains("canary"));
        let paused = get_rule(&scene, &rule).await;
        assert_eq!(paused["paused_reason"], "judge_rejected");
        let why = paused["paused_detail"].as_str().unwrap().to_owned();
        assert_eq!(done["error"], why);
        assert_eq!(decision(&scene, &rule, &first).await["decision"], "queued");
        let second = store_trace(&scene).await;
        scene.app.drain().await;
        let decided = decision(&scene, &rule, &second).await;
        assert_eq!((&decided["decision"], &decided["detail"]), (&json!("paused"), &json!(why)));
        // The rule resumes after a while, and is paused again.
        scene.own.set_behaviours([Behaviour::Status(401, None, "invalid key", "invalid_api_key")]);
        scene.app.advance(1_000);
        assert_eq!(get_rule(&scene, &rule).await["paused_reason"], Value::Null);
        let again = store_trace(&scene).await;
        scene.app.drain().await;
        assert_eq!(decision(&scene, &rule, &again).await["decision"], "queued");
        assert_eq!(get_rule(&scene, &rule).await["paused_detail"], json!(why));
        scene.own.set_behaviours([Behaviour::Succeeds]);
        scene.app.advance(120);
        scene.store_credential("openai", json!({"api_key": "sk-another-canary"})).await.ok();
        assert_eq!(get_rule(&scene, &rule).await["paused_reason"], Value::Null);
        let third = store_trace(&scene).await;
        scene.app.drain().await;
        assert_eq!(decision(&scene, &rule, &third).await["decision"], "queued");
        let list = scene.app.full_key().get(&format!("/v1/eval?trace_id={third}")).await.ok();
        assert_eq!(list["evaluations"][0]["status"], "complete", "{list}");
        scene.stop().await;
    }

    /// A rule without a judge can be created; it is paused and says how to resume it.
    async fn rule_without_judge_is_created_paused(on: On) {
        let scene = Scene::on(on, Plan::Team, &[]).await;
        let rule = create_rule(&scene).await;
        let paused = get_rule(&scene, &rule).await;
        assert_eq!(paused["paused_reason"], "provider_credentials_missing");
        assert!(paused["paused_detail"].as_str().unwrap().contains("/v1/provider-credentials/"), "{paused}");
        let id = store_trace(&scene).await;
        scene.app.drain().await;
        assert_eq!(decision(&scene, &rule, &id).await["decision"], "paused");
        let key = scene.app.full_key();
        let body = json!({"trace_id": id, "metric_name": "answer_relevance"});
        key.post("/v1/eval", &body).await.is(422, "provider_credentials_missing");
        key.post("/v1/eval/bulk", &json!({"metric_name": "bias"})).await.is(422, "provider_credentials_missing");
        key.post(&format!("/v1/eval-rules/{rule}/test"), &json!({"trace_id": id})).await.is(422, "provider_credentials_missing");
        key.post(&format!("/v1/eval-rules/{rule}/backfill"), &json!({})).await.is(422, "provider_credentials_missing");
        scene.store_credential("openai", json!({})).await.ok();
        assert_eq!(get_rule(&scene, &rule).await["paused_reason"], Value::Null);
        let tried = key.post(&format!("/v1/eval-rules/{rule}/test"), &json!({"trace_id": id})).await.ok();
        assert_eq!((&tried["score"], &tried["decision"], &tried["judge_model"]), (&json!(0.75), &json!("queued"), &json!("gpt-4o")));
        assert_eq!(used_quota(&scene).await, 1, "a rule test uses the quota of one evaluation");
        scene.stop().await;
    }

    /// With a quota of ten, a hundred concurrent requests and failing judges: ten are reserved, and the quota
    /// of the failed ones is released.
    async fn concurrent_evaluations_respect_quota(on: On) {
        let scene = Scene::on(on, Plan::Starter, &[]).await;
        scene.app.use_evaluations(2_490).await;
        let id = store_trace(&scene).await;
        let body = json!({"trace_id": id, "metric_name": "answer_relevance"});
        let tries = (0..100).map(|_| {
            let (key, body) = (scene.app.full_key(), body.clone());
            async move { key.post("/v1/eval", &body).await }
        });
        let answers = futures::future::join_all(tries).await;
        assert_eq!(answers.iter().filter(|it| it.status == 202).count(), 10);
        for response in answers.iter().filter(|it| it.status != 202) {
            response.is(402, "eval_quota_exceeded");
        }
        let bad = || Behaviour::RepliesWith("nonsense".to_owned());
        // Four of them fail, each after two requests, because an unparsable reply is requested again.
        scene.platform.set_behaviours((0..8).map(|_| bad()).chain([Behaviour::Succeeds]));
        scene.app.drain().await;
        let count = async |status: &str| {
            let list = scene.app.full_key().get(&format!("/v1/eval?limit=200&status={status}")).await.ok();
            list["evaluations"].as_array().unwrap().len()
        };
        assert_eq!((count("complete").await, count("failed").await, used_quota(&scene).await), (6, 4, json!(2_496)));
        for _ in 0..4 {
            assert_eq!(scene.app.full_key().post("/v1/eval", &body).await.status, 202);
        }
        scene.app.full_key().post("/v1/eval", &body).await.is(402, "eval_quota_exceeded");
        scene.app.drain().await;
        assert_eq!((count("complete").await, used_quota(&scene).await), (10, json!(2_500)));
        // A rule without quota says so; a rule with a code evaluator continues.
        let rule = create_rule(&scene).await;
        let late = store_trace(&scene).await;
        scene.app.drain().await;
        let decided = decision(&scene, &rule, &late).await;
        assert_eq!(decided["decision"], "quota");
        assert!(decided["detail"].as_str().unwrap().contains("2500"), "{decided}");
        // A bulk run uses the rest of the quota. The next month has a new quota.
        scene.app.full_key().post("/v1/eval/bulk", &json!({"metric_name": "bias"})).await.is(402, "eval_quota_exceeded");
        scene.app.advance(31 * 86_400);
        let begun = scene.app.full_key().post("/v1/eval/bulk", &json!({"metric_name": "answer_relevance"})).await.ok();
        assert_eq!((&begun["matched"], &begun["queued"]), (&json!(2), &json!(2)));
        scene.app.drain().await;
        assert_eq!(used_quota(&scene).await, 2);
        scene.stop().await;
    }

    /// A bulk run uses the rest of the quota, and releases the part that it did not need.
    async fn bulk_evaluation_releases_unused_quota(on: On) {
        let scene = Scene::on(on, Plan::Starter, &[]).await;
        for _ in 0..5 {
            store_trace(&scene).await;
        }
        scene.app.use_evaluations(2_497).await;
        let key = scene.app.full_key();
        let begun = key.post("/v1/eval/bulk", &json!({"metric_name": "answer_relevance"})).await.ok();
        assert_eq!((&begun["matched"], &begun["queued"]), (&json!(5), &json!(3)));
        scene.app.drain().await;
        let done = key.get(&format!("/v1/eval/bulk/{}", begun["bulk_id"].as_str().unwrap())).await.ok();
        assert_eq!((&done["complete"], &done["status"]), (&json!(3), &json!("complete")));
        assert!(done["detail"].as_str().unwrap().contains("used up"), "{done}");
        // A backfill skips the traces that the rule has evaluated, and releases their quota.
        scene.app.advance(31 * 86_400);
        let rule = create_rule(&scene).await;
        let latest = store_trace(&scene).await;
        scene.app.drain().await;
        assert_eq!(decision(&scene, &rule, &latest).await["decision"], "queued");
        let begun = key.post(&format!("/v1/eval-rules/{rule}/backfill"), &json!({})).await.ok();
        assert_eq!(begun["matched"], 6);
        assert_eq!(used_quota(&scene).await, 1, "a backfill reserves quota only for what it evaluates");
        scene.app.drain().await;
        assert_eq!(used_quota(&scene).await, 6);
        // The quota of a pending evaluation is released when its trace is removed.
        let id = store_trace(&scene).await;
        key.post("/v1/eval", &json!({"trace_id": id, "metric_name": "bias"})).await.ok();
        assert_eq!(used_quota(&scene).await, 7);
        scene.app.session(Role::Owner).delete(&format!("/v1/traces/{id}")).await.ok();
        assert_eq!(used_quota(&scene).await, 6);
        scene.stop().await;
    }
}
