//! Judges as a caller of `POST /v1/eval` and of rules sees them.

use futures::future::join_all;
use sea_orm::{EntityTrait, Set};
use store::quotas::{Quota, month};

use super::*;

pub const METRIC_NAME: &str = "answer_relevance";

impl Scene {
    /// Stores a trace that a judge can evaluate.
    pub async fn store_trace(&self) -> Value {
        let item = json!({"name": "chat", "input": "Where is my parcel?", "output": "On its way."});
        self.app.full_key().post("/v1/ingest", &item).await.ok()["id"].clone()
    }

    /// Requests an evaluation of a new trace. Returns its path.
    pub async fn evaluate(&self) -> String {
        let body = json!({"trace_id": self.store_trace().await, "metric_name": METRIC_NAME});
        let evaluation = self.app.full_key().post("/v1/eval", &body).await.ok();
        format!("/v1/eval/{}", evaluation["id"].as_str().unwrap())
    }

    /// Returns an evaluation of a new trace after the first attempt.
    pub async fn evaluate_once(&self) -> (String, Value) {
        let path = self.evaluate().await;
        self.app.drain().await;
        let now = self.get(&path).await;
        (path, now)
    }

    pub async fn get(&self, path: &str) -> Value {
        self.app.full_key().get(path).await.ok()
    }

    /// Creates a scene with a tenant on the plan Team whose own provider judges.
    pub async fn judging(database: On, flags: &[&str]) -> Self {
        let scene = Self::on(database, Plan::Team, flags).await;
        scene.store_credential("openai", json!({})).await.ok();
        scene
    }

    /// Counts `n` LLM evaluations as used in the current month.
    pub async fn use_evaluations(&self, n: i64) {
        let row = entities::quota_use::ActiveModel {
            tenant_id: Set(self.app.tenant),
            month: Set(month(server::clock::Clock::now(self.app.clock.as_ref()))),
            quota: Set(Quota::LlmEvaluations.as_str().to_owned()),
            slot: Set(0),
            used: Set(n),
        };
        entities::quota_use::Entity::insert(row)
            .exec_without_returning(&self.app.app.db.write)
            .await
            .unwrap();
    }
}

on_both! {
    async fn evaluation_over_http_has_verdict_and_cost(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let (_, done) = scene.evaluate_once().await;
        assert_eq!((&done["status"], &done["score"], &done["label"]), (&json!("complete"), &json!(0.75), &json!("pass")), "{done}");
        assert_eq!((&done["reasoning"], &done["error"]), (&json!("It answers the question."), &Value::Null));
        assert_eq!((&done["judge_model"], &done["model_tier"]), (&json!("gpt-4o"), &json!("cheap")));
        assert_eq!((&done["prompt_tokens"], &done["completion_tokens"], &done["cost"]), (&json!(1_000), &json!(100), &json!(0.0035)));
        let request = scene.own.take_requests().remove(0);
        assert!(request.message_texts().concat().contains("Where is my parcel?"));
        scene.stop().await;
    }

    /// An unparsable reply is requested once more and then fails the evaluation, with its cost and without a
    /// score.
    async fn unparsable_reply_is_requested_once_more_over_http(on: On) {
        let scene = Scene::judging(on, &[]).await;
        for behaviour in [Behaviour::RepliesWith("Great answer! 10/10".to_owned()), Behaviour::RepliesWith(r#"{"reasoning": "x", "score": 11}"#.to_owned())] {
            scene.own.set_behaviours([behaviour]);
            let (_, done) = scene.evaluate_once().await;
            assert_eq!((&done["status"], &done["score"], &done["label"]), (&json!("failed"), &Value::Null, &Value::Null), "{done}");
            assert_eq!((&done["judge_model"], &done["prompt_tokens"], &done["cost"]), (&json!("gpt-4o"), &json!(2_000), &json!(0.007)));
            assert!(done["error"].as_str().unwrap().contains("returned no verdict"), "{done}");
        }
        scene.own.set_behaviours([Behaviour::SendsEndlessly]);
        assert_eq!(scene.evaluate_once().await.1["status"], "failed");
        scene.stop().await;
    }

    /// `Retry-After` decides the time of a retry; there are at most eight attempts.
    async fn temporary_failure_over_http_is_retried_eight_times(on: On) {
        let scene = Scene::judging(on, &[]).await;
        scene.own.set_behaviours([Behaviour::Status(429, Some("30"), "Rate limit reached", "rate_limit_exceeded")]);
        let (path, now) = scene.evaluate_once().await;
        assert_eq!((&now["status"], &now["error"]), (&json!("pending"), &Value::Null), "{now}");
        scene.app.advance(29);
        scene.app.drain().await;
        assert_eq!(scene.own.request_count(), 1);
        scene.own.set_behaviours([Behaviour::Succeeds]);
        scene.app.advance(1);
        scene.app.drain().await;
        assert_eq!(scene.get(&path).await["status"], "complete");

        scene.own.take_requests();
        scene.own.set_behaviours([Behaviour::Status(503, None, "away", "")]);
        let path = scene.evaluate().await;
        for _ in 0..60 {
            scene.app.drain().await;
            scene.app.advance(60);
        }
        let done = scene.get(&path).await;
        assert_eq!((&done["status"], &done["score"]), (&json!("failed"), &Value::Null), "{done}");
        assert!(done["error"].as_str().unwrap().contains("it returned status 503"), "{done}");
        // Each attempt includes one immediate repetition.
        assert_eq!(scene.own.request_count(), 16);
        scene.stop().await;
    }

    async fn silent_judge_times_out_over_http(on: On) {
        let scene = Scene::judging(on, &["--judge-timeout", "1"]).await;
        scene.own.set_behaviours([Behaviour::Stalls]);
        let (path, now) = scene.evaluate_once().await;
        assert_eq!(now["status"], "pending", "{now}");
        scene.own.set_behaviours([Behaviour::Succeeds]);
        scene.app.advance(10);
        scene.app.drain().await;
        assert_eq!(scene.get(&path).await["status"], "complete");
        scene.stop().await;
    }

    /// A rule whose judge fails permanently is paused with a reason.
    async fn broken_judge_pauses_rule_over_http(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let key = scene.app.full_key();
        let rule = json!({"project_id": scene.app.project, "metric_name": METRIC_NAME, "evaluator_type": "llm"});
        let rule = key.post("/v1/eval-rules", &rule).await.ok();
        let path = format!("/v1/eval-rules/{}", rule["id"].as_str().unwrap());
        scene.app.advance(1);
        scene.own.set_behaviours([Behaviour::Status(401, None, "Incorrect API key provided", "invalid_api_key")]);
        let (_, done) = scene.evaluate_once().await;
        assert_eq!(done["status"], "failed", "{done}");
        assert!(done["error"].as_str().unwrap().contains("PUT /v1/provider-credentials/openai"), "{done}");
        for _ in 0..3 {
            scene.app.advance(10);
            scene.app.drain().await;
        }
        let rule = scene.get(&path).await;
        assert_eq!(rule["paused_reason"], "judge_rejected");
        let paused = rule["paused_detail"].clone();
        assert!(paused.as_str().unwrap().contains("Incorrect API key provided"), "{paused}");
        assert!(!paused.to_string().contains("canary"), "{paused}");
        scene.stop().await;
    }

    async fn evaluation_without_judge_is_rejected_over_http(on: On) {
        let app = TestApp::with(on, Plan::Team, &[]).await;
        let id = app.full_key().post("/v1/ingest", &json!({"name": "t", "input": "a", "output": "b"})).await.ok()["id"].clone();
        let body = json!({"trace_id": id, "metric_name": METRIC_NAME});
        app.full_key().post("/v1/eval", &body).await.is(422, "provider_credentials_missing");
        app.set_plan(Plan::Pro).await;
        app.full_key().post("/v1/eval", &body).await.is(422, "judge_not_configured");
        app.stop().await;
    }

    /// With a quota of ten, a hundred concurrent requests and failing judges: ten are complete, and failed
    /// ones use no quota.
    async fn quota_is_respected_over_http(on: On) {
        let scene = Scene::on(on, Plan::Pro, &[]).await;
        scene.use_evaluations(49_990).await;
        let trace = scene.store_trace().await;
        let (key, body) = (scene.app.full_key(), json!({"trace_id": trace, "metric_name": METRIC_NAME}));
        let behaviours = (0..8).map(|_| Behaviour::Status(400, None, "filtered", "content_filter")).chain([Behaviour::Succeeds]);
        scene.platform.set_behaviours(behaviours);
        let mut rounds = Vec::new();
        for _ in 0..3 {
            let replies = join_all((0..100).map(|_| key.post("/v1/eval", &body))).await;
            for refused in replies.iter().filter(|it| it.status != 202) {
                assert_eq!((refused.status, refused.code().as_deref()), (402, Some("eval_quota_exceeded")));
            }
            rounds.push(replies.iter().filter(|it| it.status == 202).count());
            scene.app.drain().await;
        }
        assert_eq!(rounds, [10, 8, 0]);
        let list = |status: &str| format!("/v1/eval?limit=200&status={status}");
        let complete = scene.get(&list("complete")).await["evaluations"].as_array().unwrap().len();
        let failed = scene.get(&list("failed")).await["evaluations"].as_array().unwrap().len();
        assert_eq!((complete, failed), (10, 8));
        scene.stop().await;
    }
}
