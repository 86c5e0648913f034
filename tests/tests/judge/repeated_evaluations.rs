//! Repeated evaluations, and the cost of judge requests without a verdict.

use std::time::Duration;

use tokio::sync::Notify;

use super::{over_http::METRIC_NAME, *};

impl Scene {
    /// Creates a rule of the project with an LLM evaluator. Returns its path.
    pub async fn create_rule(&self) -> String {
        let rule =
            json!({"project_id": self.app.project, "metric_name": METRIC_NAME, "evaluator_type": "llm"});
        let rule = self.app.full_key().post("/v1/eval-rules", &rule).await.ok();
        self.app.advance(1);
        format!("/v1/eval-rules/{}", rule["id"].as_str().unwrap())
    }

    /// Makes the stored traces ready, and runs the jobs that follow.
    pub async fn fire_rules(&self) {
        for _ in 0..3 {
            self.app.advance(10);
            self.app.drain().await;
        }
    }

    /// Returns all evaluations, newest first.
    pub async fn evaluations(&self) -> Vec<Value> {
        self.get("/v1/eval").await["evaluations"].as_array().unwrap().clone()
    }

    /// Waits until the tenant's provider has received this many requests.
    pub async fn wait_for_requests(&self, times: usize) {
        while self.own.request_count() < times {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Returns a behaviour that holds the response back until the notification.
pub fn waiting_behaviour(then: Behaviour) -> (Arc<Notify>, Behaviour) {
    let told = Arc::new(Notify::new());
    (Arc::clone(&told), Behaviour::Waits(told, Box::new(then)))
}

pub fn statuses(evaluations: &[Value]) -> Vec<&str> {
    evaluations.iter().map(|it| it["status"].as_str().unwrap()).collect()
}

on_both! {
    /// A backfill repeats failed evaluations, and not completed ones.
    async fn backfill_repeats_failed_evaluations(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let rule = scene.create_rule().await;
        scene.own.set_behaviours([Behaviour::Status(400, None, "filtered", "content_filter"), Behaviour::Succeeds]);
        let trace = scene.store_trace().await;
        scene.fire_rules().await;
        assert_eq!(statuses(&scene.evaluations().await), ["failed"]);
        let decisions = format!("{rule}/decisions?trace_id={}", trace.as_str().unwrap());
        let decided = scene.get(&decisions).await["decisions"][0].clone();
        assert_eq!(decided["decision"], "queued", "{decided}");
        assert!(decided["detail"].as_str().unwrap().contains("backfill"), "{decided}");

        let key = scene.app.full_key();
        for expected in [1, 0] {
            let run = key.post(&format!("{rule}/backfill"), &json!({})).await.ok();
            scene.app.drain().await;
            let run = scene.get(&format!("/v1/eval/bulk/{}", run["bulk_id"].as_str().unwrap())).await;
            assert_eq!((&run["complete"], &run["status"]), (&json!(expected), &json!("complete")), "{run}");
        }
        let all = scene.evaluations().await;
        assert_eq!(statuses(&all), ["complete", "failed"]);
        let decided = scene.get(&decisions).await["decisions"][0].clone();
        assert_eq!(decided["evaluation_id"], all[0]["id"], "the decision does not refer to the newest evaluation: {decided}");
        scene.stop().await;
    }

    /// The rejection of a key that was replaced during the request pauses nothing.
    async fn credential_replaced_during_call_does_not_pause_rule(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let rule = scene.create_rule().await;
        let (told, refusing) = waiting_behaviour(Behaviour::Status(401, None, "no", "invalid_api_key"));
        scene.own.set_behaviours([refusing, Behaviour::Succeeds]);
        scene.store_trace().await;
        let mending = async {
            scene.wait_for_requests(1).await;
            scene.app.advance(1);
            scene.store_credential("openai", json!({"api_key": "sk-another"})).await.ok();
            told.notify_one();
        };
        tokio::join!(scene.fire_rules(), mending);
        assert_eq!(statuses(&scene.evaluations().await), ["complete"]);
        assert_eq!(scene.get(&rule).await["paused_reason"], Value::Null);
        assert_eq!(scene.own.take_requests().pop().unwrap().key, "sk-another");
        scene.stop().await;
    }

    /// The rejection of a judge that the rule no longer uses does not pause it.
    async fn rule_changed_during_call_is_not_paused(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let rule = scene.create_rule().await;
        let (told, refusing) = waiting_behaviour(Behaviour::Status(404, None, "The model does not exist", "model_not_found"));
        scene.own.set_behaviours([refusing, Behaviour::Succeeds]);
        scene.store_trace().await;
        let mending = async {
            scene.wait_for_requests(1).await;
            scene.app.advance(1);
            let key = scene.app.full_key();
            let change = key.request(reqwest::Method::PATCH, &rule).json(&json!({"model_tier": "premium"}));
            key.send(change).await.ok();
            told.notify_one();
        };
        tokio::join!(scene.fire_rules(), mending);
        assert_eq!(statuses(&scene.evaluations().await), ["failed"]);
        assert_eq!(scene.get(&rule).await["paused_reason"], Value::Null);
        scene.stop().await;
    }

    /// Paused rules resume when the failing credential is deleted or the plan changes, because both change
    /// the judge.
    async fn paused_rule_resumes_when_its_judge_changes(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let rule = scene.create_rule().await;
        let refused = || Behaviour::Status(401, None, "no", "invalid_api_key");
        let paused = async || !scene.get(&rule).await["paused_reason"].is_null();
        scene.own.set_behaviours([refused()]);
        scene.store_trace().await;
        scene.fire_rules().await;
        assert!(paused().await);
        let anthropic = json!({"api_key": "sk-ant", "base_url": scene.own.url(), "judge_model_cheap": "claude"});
        scene.app.session(Role::Owner).put("/v1/provider-credentials/anthropic", &anthropic).await.ok();
        scene.store_trace().await;
        scene.fire_rules().await;
        assert!(paused().await, "the rule still uses its previous judge");
        let owner = scene.app.session(Role::Owner);
        assert_eq!(owner.delete("/v1/provider-credentials/openai").await.status, 204);
        assert!(!paused().await);
        scene.store_trace().await;
        scene.fire_rules().await;
        assert!(paused().await);
        scene.app.set_plan(Plan::Pro).await;
        assert!(!paused().await, "the judge of the platform does not resume the rule");
        scene.store_trace().await;
        scene.fire_rules().await;
        assert_eq!(scene.evaluations().await[0]["status"], "complete");
        scene.stop().await;
    }

    /// Pending evaluations of a deleted rule are completed.
    async fn pending_evaluation_of_deleted_rule_is_completed(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let rule = scene.create_rule().await;
        scene.own.set_behaviours([Behaviour::Status(503, Some("20"), "away", ""), Behaviour::Status(503, Some("20"), "away", ""), Behaviour::Succeeds]);
        scene.store_trace().await;
        scene.app.advance(10);
        scene.app.drain().await;
        assert_eq!(statuses(&scene.evaluations().await), ["pending"]);
        assert_eq!(scene.app.full_key().delete(&rule).await.status, 204);
        scene.fire_rules().await;
        scene.fire_rules().await;
        let done = scene.evaluations().await.remove(0);
        assert_eq!((&done["status"], &done["score"]), (&json!("complete"), &json!(0.75)), "{done}");
        scene.stop().await;
    }

    /// The tokens of responses before an outage of the judge are counted too.
    async fn tokens_of_all_judge_attempts_are_counted(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let away = || Behaviour::Status(503, None, "away", "");
        scene.own.set_behaviours([Behaviour::RepliesWith("?".to_owned()), away(), away(), Behaviour::Succeeds]);
        let (path, now) = scene.evaluate_once().await;
        assert_eq!((&now["status"], &now["prompt_tokens"]), (&json!("pending"), &json!(1_000)), "{now}");
        scene.app.advance(5);
        scene.app.drain().await;
        let done = scene.get(&path).await;
        assert_eq!((&done["status"], &done["score"]), (&json!("complete"), &json!(0.75)), "{done}");
        let spent = (&done["prompt_tokens"], &done["completion_tokens"], &done["cost"]);
        assert_eq!(spent, (&json!(2_000), &json!(200), &json!(0.007)));
        scene.stop().await;
    }

    /// A caller that cancels the test of a rule does not use quota for it.
    async fn cancelled_rule_test_uses_no_quota(on: On) {
        let scene = Scene::on(on, Plan::Pro, &[]).await;
        let rule = scene.create_rule().await;
        scene.use_evaluations(49_998).await;
        let trace = scene.store_trace().await;
        scene.fire_rules().await;
        let (told, refusing) = waiting_behaviour(Behaviour::Status(400, None, "filtered", "content_filter"));
        scene.platform.set_behaviours([refusing, Behaviour::Succeeds]);
        let (path, body, key) = (format!("{rule}/test"), json!({"trace_id": trace}), scene.app.full_key());
        let before = scene.platform.request_count();
        tokio::select! {
            reply = key.post(&path, &body) => panic!("{}", reply.text()),
            () = async {
                while scene.platform.request_count() == before {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            } => {}
        }
        key.post(&path, &body).await.is(402, "eval_quota_exceeded");
        told.notify_one();
        // The quota is released soon.
        while key.post(&path, &body).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        scene.stop().await;
    }
}

/// An open circuit breaker is checked before the trace is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_circuit_breaker_sends_no_request() {
    let scene = Scene::with_own_provider("openai").await;
    let chosen = scene.selected_judge().await;
    assert!(scene.app.app.judge.would_admit(&chosen).is_ok());
    scene.own.set_behaviours([Behaviour::Status(
        429,
        Some("30"),
        "Rate limit reached",
        "rate_limit_exceeded",
    )]);
    scene.request_failure().await;
    let rests = scene.app.app.judge.would_admit(&chosen).unwrap_err();
    assert_eq!((rests.kind, rests.retry_after), (JudgeFailureKind::Waiting, Some(Duration::from_secs(30))));
    scene.app.advance(30);
    // The check itself takes no permit.
    for _ in 0..2 {
        assert!(scene.app.app.judge.would_admit(&chosen).is_ok());
    }
    scene.stop().await;
}
