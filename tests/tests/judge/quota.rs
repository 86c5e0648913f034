//! The monthly quota of LLM evaluations: its limit, its release, and a lowered plan.

use super::{over_http::METRIC_NAME, *};

impl Scene {
    /// Checks that every kind of request for a judge is rejected, because the quota is used up.
    async fn check_every_request_is_rejected(&self, rule: &str, trace: &Value) {
        for (path, body) in [
            ("/v1/eval", json!({"trace_id": trace, "metric_name": METRIC_NAME})),
            ("/v1/eval/bulk", json!({"metric_name": METRIC_NAME})),
            (&format!("{rule}/test"), json!({"trace_id": trace})),
            (&format!("{rule}/backfill"), json!({})),
        ] {
            self.app.full_key().post(path, &body).await.is(402, "eval_quota_exceeded");
        }
    }
}

on_both! {
    async fn used_up_quota_rejects_every_judge_request(on: On) {
        let scene = Scene::on(on, Plan::Starter, &[]).await;
        scene.use_evaluations(2_499).await;
        let rule = scene.create_rule().await;
        scene.store_trace().await;
        scene.fire_rules().await;
        assert_eq!((scene.platform.request_count(), scene.used_quota().await), (1, json!(2_500)));
        let trace = scene.store_trace().await;
        scene.fire_rules().await;
        scene.check_every_request_is_rejected(&rule, &trace).await;
        let decided = scene.get(&format!("{rule}/decisions?trace_id={}", trace.as_str().unwrap())).await;
        assert_eq!(decided["decisions"][0]["decision"], "quota", "{decided}");
        // Code evaluators continue.
        let by_code = scene.evaluate_trace(&trace, "pii_leakage", json!({})).await;
        assert_eq!(by_code["status"], "complete", "{by_code}");
        assert_eq!((scene.platform.request_count(), scene.used_quota().await), (1, json!(2_500)));
        scene.stop().await;
    }

    async fn failed_rule_test_releases_its_quota(on: On) {
        let scene = Scene::on(on, Plan::Starter, &[]).await;
        scene.use_evaluations(2_499).await;
        let (rule, trace, key) = (scene.create_rule().await, scene.store_trace().await, scene.app.full_key());
        scene.patch(&rule, &json!({"enabled": false})).await.ok();
        let (path, body) = (format!("{rule}/test"), json!({"trace_id": trace}));
        for behaviour in [Behaviour::RepliesWith("?".to_owned()), Behaviour::Status(400, None, "filtered", "content_filter"), Behaviour::Status(503, None, "away", "")] {
            scene.platform.set_behaviours([behaviour]);
            let tried = key.post(&path, &body).await.ok();
            assert_eq!((&tried["status"], scene.used_quota().await), (&json!("failed"), json!(2_499)), "{tried}");
        }
        scene.platform.set_behaviours([Behaviour::Succeeds]);
        let tried = key.post(&path, &body).await.ok();
        assert_eq!((&tried["status"], scene.used_quota().await), (&json!("complete"), json!(2_500)), "{tried}");
        key.post(&path, &body).await.is(402, "eval_quota_exceeded");
        scene.stop().await;
    }

    /// Evaluations reserved on the higher plan are completed; more need that plan or the next month.
    async fn plan_lowered_below_usage_completes_reserved_evaluations(on: On) {
        let scene = Scene::on(on, Plan::Pro, &[]).await;
        scene.use_evaluations(2_998).await;
        let (rule, trace) = (scene.create_rule().await, scene.store_trace().await);
        let (good, bad) = (scene.request_evaluation(&trace, METRIC_NAME, json!({})).await, scene.request_evaluation(&trace, METRIC_NAME, json!({})).await);
        scene.app.set_plan(Plan::Starter).await;
        scene.check_every_request_is_rejected(&rule, &trace).await;
        scene.platform.set_behaviours([Behaviour::Succeeds, Behaviour::Status(400, None, "filtered", "content_filter"), Behaviour::Succeeds]);
        scene.app.drain().await;
        let mut found = [scene.get(&good).await, scene.get(&bad).await].map(|it| it["status"].as_str().unwrap().to_owned());
        found.sort();
        assert_eq!((found, scene.used_quota().await), (["complete", "failed"].map(str::to_owned), json!(2_999)));
        scene.check_every_request_is_rejected(&rule, &trace).await;
        scene.app.set_plan(Plan::Pro).await;
        assert_eq!(scene.evaluate_trace(&trace, METRIC_NAME, json!({})).await["status"], "complete");
        scene.app.set_plan(Plan::Starter).await;
        scene.app.advance(31 * 86_400);
        assert_eq!(scene.evaluate_trace(&trace, METRIC_NAME, json!({})).await["status"], "complete");
        assert_eq!(scene.used_quota().await, 1);
        scene.stop().await;
    }
}
