//! Pending and running evaluations whose trace, rule, plan or credential changes or is removed.

use super::{
    over_http::METRIC_NAME,
    repeated_evaluations::{statuses, waiting_behaviour},
    *,
};

/// Returns the behaviours of a provider that is busy once and then works.
fn busy() -> [Behaviour; 2] {
    [Behaviour::Status(429, Some("30"), "Rate limit reached", "rate_limit_exceeded"), Behaviour::Succeeds]
}

on_both! {
    /// The rule is paused, and pending evaluations fail without using quota; a new credential lets both work
    /// again.
    async fn deleted_credential_fails_pending_evaluations(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let rule = scene.create_rule().await;
        scene.own.set_behaviours(busy());
        scene.store_trace().await;
        scene.app.drain().await;
        assert_eq!((statuses(&scene.evaluations().await), scene.used_quota().await), (vec!["pending"], json!(1)));
        scene.app.session(Role::Owner).delete("/v1/provider-credentials/openai").await.ok();
        let paused = scene.get(&rule).await;
        assert_eq!(paused["paused_reason"], "provider_credentials_missing");
        let why = paused["paused_detail"].as_str().unwrap().to_owned();
        assert!(why.contains("PUT /v1/provider-credentials/"), "{why}");
        scene.app.advance(30);
        scene.app.drain().await;
        let done = &scene.evaluations().await[0];
        assert_eq!((&done["status"], &done["score"], &done["error"]), (&json!("failed"), &Value::Null, &json!(why)));
        assert_eq!((scene.own.request_count(), scene.platform.request_count(), scene.used_quota().await), (1, 0, json!(0)));
        scene.store_credential("openai", json!({})).await.ok();
        assert_eq!(scene.get(&rule).await["paused_reason"], Value::Null);
        scene.app.full_key().post(&format!("{rule}/backfill"), &json!({})).await.ok();
        scene.app.drain().await;
        assert_eq!((statuses(&scene.evaluations().await), scene.used_quota().await), (vec!["complete", "failed"], json!(1)));
        scene.stop().await;
    }

    /// The judge is selected at the time of the evaluation, according to the plan of that time.
    async fn changed_plan_selects_the_judge_of_pending_evaluations(on: On) {
        let scene = Scene::on(on, Plan::Pro, &[]).await;
        let trace = scene.store_trace().await;
        let waiting = scene.request_evaluation(&trace, METRIC_NAME, json!({})).await;
        scene.app.set_plan(Plan::Team).await;
        scene.app.drain().await;
        let done = scene.get(&waiting).await;
        assert_eq!(done["status"], "failed", "{done}");
        assert!(done["error"].as_str().unwrap().contains("PUT /v1/provider-credentials/"), "{done}");
        assert_eq!((scene.platform.request_count(), scene.used_quota().await), (0, json!(0)));
        for (before, after, own, platform) in [(Plan::Pro, Plan::Team, 1, 0), (Plan::Team, Plan::Pro, 0, 1)] {
            scene.app.set_plan(Plan::Team).await;
            scene.store_credential("openai", json!({})).await.ok();
            scene.app.set_plan(before).await;
            let waiting = scene.request_evaluation(&trace, METRIC_NAME, json!({})).await;
            scene.app.set_plan(after).await;
            scene.app.drain().await;
            assert_eq!(scene.get(&waiting).await["status"], "complete");
            assert_eq!((scene.own.take_requests().len(), scene.platform.take_requests().len()), (own, platform), "{before} {after}");
        }
        scene.stop().await;
    }

    /// The verdict on a removed trace is dropped and uses no quota.
    async fn verdict_on_removed_trace_is_dropped(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let (told, thinking) = waiting_behaviour(Behaviour::Succeeds);
        scene.own.set_behaviours([thinking]);
        let trace = scene.store_trace().await;
        let path = scene.request_evaluation(&trace, METRIC_NAME, json!({})).await;
        let removing = async {
            scene.wait_for_requests(1).await;
            assert_eq!(scene.get(&path).await["status"], "running");
            scene.app.session(Role::Owner).delete(&format!("/v1/traces/{}", trace.as_str().unwrap())).await.ok();
            assert_eq!(scene.used_quota().await, 0);
            told.notify_one();
        };
        tokio::join!(scene.app.drain(), removing);
        scene.app.full_key().get(&path).await.is(404, "not_found");
        assert_eq!((scene.evaluations().await.len(), scene.used_quota().await), (0, json!(0)));
        scene.app.advance(60);
        scene.app.drain().await;
        assert_eq!((scene.own.request_count(), scene.used_quota().await), (1, json!(0)));
        scene.stop().await;
    }

    /// Evaluations of a removed rule remain, and pending ones are completed with the requested options.
    async fn removed_rule_keeps_its_evaluations(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let rule = scene.create_rule().await;
        scene.store_trace().await;
        scene.app.drain().await;
        scene.own.set_behaviours(busy());
        scene.store_trace().await;
        scene.app.drain().await;
        assert_eq!(scene.app.full_key().delete(&rule).await.status, 204);
        scene.app.advance(30);
        scene.app.drain().await;
        let rows = scene.evaluations().await;
        let mut found = statuses(&rows);
        found.sort_unstable();
        assert_eq!((found, scene.used_quota().await), (vec!["complete", "complete"], json!(2)));
        assert!(rows.iter().all(|it| rule.ends_with(it["rule_id"].as_str().unwrap())), "{rows:?}");
        scene.stop().await;
    }

    async fn removed_evaluator_fails_pending_evaluations(on: On) {
        let scene = Scene::judging(on, &[]).await;
        scene.create_evaluator(json!({"name": "polite", "evaluator_type": "llm", "rubric": "Is {{output}} polite?"})).await;
        let trace = scene.store_trace().await;
        let waiting = scene.request_evaluation(&trace, "polite", json!({})).await;
        assert_eq!(scene.used_quota().await, 1);
        scene.app.session(Role::Owner).delete("/v1/evaluators/polite").await.ok();
        scene.app.drain().await;
        let done = scene.get(&waiting).await;
        assert_eq!((&done["status"], &done["score"], &done["metric_name"]), (&json!("failed"), &Value::Null, &json!("polite")));
        assert!(done["error"].as_str().unwrap().contains("`polite`"), "{done}");
        assert_eq!((scene.own.request_count(), scene.used_quota().await), (0, json!(0)));
        scene.stop().await;
    }

    /// After a change of a rule, pending evaluations are completed with the requested options.
    async fn changed_rule_keeps_options_of_pending_evaluations(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let rule = scene.create_rule().await;
        scene.patch(&rule, &json!({"config": {"rubric": "Mind the old words.", "threshold": 0.9}})).await.ok();
        scene.app.advance(1);
        scene.own.set_behaviours(busy());
        scene.store_trace().await;
        scene.app.drain().await;
        let change = json!({"metric_name": "bias", "config": {"rubric": "Mind the new words."}});
        assert_eq!(scene.patch(&rule, &change).await.ok()["metric_name"], "bias");
        scene.app.advance(30);
        scene.app.drain().await;
        let done = scene.evaluations().await.remove(0);
        assert_eq!((&done["status"], &done["metric_name"], &done["label"]), (&json!("complete"), &json!(METRIC_NAME), &json!("warn")), "{done}");
        assert!(scene.own.take_requests().pop().unwrap().message_texts()[0].contains("Mind the old words."));
        scene.store_trace().await;
        scene.fire_rules().await;
        let done = scene.evaluations().await.remove(0);
        assert_eq!((&done["metric_name"], &done["label"]), (&json!("bias"), &json!("pass")), "{done}");
        assert!(scene.own.take_requests().pop().unwrap().message_texts()[0].contains("Mind the new words."));
        scene.stop().await;
    }
}
