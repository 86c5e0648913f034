//! The monthly quota of LLM evaluations: its limit, its release, and a lowered plan.

use super::{over_http::METRIC, *};

impl Scene {
    /// Checks that every kind of request for a judge is rejected, because the quota is used up.
    async fn refuses_all(&self, rule: &str, trace: &Value) {
        for (path, body) in [
            ("/v1/eval", json!({"trace_id": trace, "metric_name": METRIC})),
            ("/v1/eval/bulk", json!({"metric_name": METRIC})),
            (&format!("{rule}/test"), json!({"trace_id": trace})),
            (&format!("{rule}/backfill"), json!({})),
        ] {
            self.app.full_key().post(path, &body).await.is(402, "eval_quota_exceeded");
        }
    }
}

on_both! {
    async fn at_its_end_nobody_is_asked(on: On) {
        let scene = Scene::on(on, Plan::Starter, &[]).await;
        scene.use_evaluations(2_499).await;
        let rule = scene.rule().await;
        scene.say().await;
        scene.fire().await;
        assert_eq!((scene.platform.count(), scene.used().await), (1, json!(2_500)));
        let trace = scene.say().await;
        scene.fire().await;
        scene.refuses_all(&rule, &trace).await;
        let decided = scene.get(&format!("{rule}/decisions?trace_id={}", trace.as_str().unwrap())).await;
        assert_eq!(decided["decisions"][0]["decision"], "quota", "{decided}");
        // Code evaluators continue.
        let by_code = scene.judged(&trace, "pii_leakage", json!({})).await;
        assert_eq!(by_code["status"], "complete", "{by_code}");
        assert_eq!((scene.platform.count(), scene.used().await), (1, json!(2_500)));
        scene.stop().await;
    }

    async fn a_test_that_fails_is_given_back(on: On) {
        let scene = Scene::on(on, Plan::Starter, &[]).await;
        scene.use_evaluations(2_499).await;
        let (rule, trace, key) = (scene.rule().await, scene.say().await, scene.app.full_key());
        scene.patch(&rule, &json!({"enabled": false})).await.ok();
        let (path, body) = (format!("{rule}/test"), json!({"trace_id": trace}));
        for mood in [Mood::Says("?".to_owned()), Mood::Status(400, None, "filtered", "content_filter"), Mood::Status(503, None, "away", "")] {
            scene.platform.turn([mood]);
            let tried = key.post(&path, &body).await.ok();
            assert_eq!((&tried["status"], scene.used().await), (&json!("failed"), json!(2_499)), "{tried}");
        }
        scene.platform.turn([Mood::Well]);
        let tried = key.post(&path, &body).await.ok();
        assert_eq!((&tried["status"], scene.used().await), (&json!("complete"), json!(2_500)), "{tried}");
        key.post(&path, &body).await.is(402, "eval_quota_exceeded");
        scene.stop().await;
    }

    /// Evaluations reserved on the higher plan are completed; more need that plan or the next month.
    async fn a_plan_lowered_below_what_is_used(on: On) {
        let scene = Scene::on(on, Plan::Pro, &[]).await;
        scene.use_evaluations(2_998).await;
        let (rule, trace) = (scene.rule().await, scene.say().await);
        let (good, bad) = (scene.want(&trace, METRIC, json!({})).await, scene.want(&trace, METRIC, json!({})).await);
        scene.app.set_plan(Plan::Starter).await;
        scene.refuses_all(&rule, &trace).await;
        scene.platform.turn([Mood::Well, Mood::Status(400, None, "filtered", "content_filter"), Mood::Well]);
        scene.app.drain().await;
        let mut found = [scene.get(&good).await, scene.get(&bad).await].map(|it| it["status"].as_str().unwrap().to_owned());
        found.sort();
        assert_eq!((found, scene.used().await), (["complete", "failed"].map(str::to_owned), json!(2_999)));
        scene.refuses_all(&rule, &trace).await;
        scene.app.set_plan(Plan::Pro).await;
        assert_eq!(scene.judged(&trace, METRIC, json!({})).await["status"], "complete");
        scene.app.set_plan(Plan::Starter).await;
        scene.app.advance(31 * 86_400);
        assert_eq!(scene.judged(&trace, METRIC, json!({})).await["status"], "complete");
        assert_eq!(scene.used().await, 1);
        scene.stop().await;
    }
}
