//! Pending and running evaluations whose trace, rule, plan or credential changes or is removed.

use super::{
    again::{held, statuses},
    over_http::METRIC,
    *,
};

/// Returns the moods of a provider that is busy once and then works.
fn busy() -> [Mood; 2] {
    [Mood::Status(429, Some("30"), "Rate limit reached", "rate_limit_exceeded"), Mood::Well]
}

on_both! {
    /// The rule is paused, and pending evaluations fail without using quota; a new credential lets both work
    /// again.
    async fn a_credential(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let rule = scene.rule().await;
        scene.own.turn(busy());
        scene.say().await;
        scene.app.drain().await;
        assert_eq!((statuses(&scene.evaluations().await), scene.used().await), (vec!["pending"], json!(1)));
        scene.app.session(Role::Owner).delete("/v1/provider-credentials/openai").await.ok();
        let paused = scene.get(&rule).await;
        assert_eq!(paused["paused_reason"], "provider_credentials_missing");
        let why = paused["paused_detail"].as_str().unwrap().to_owned();
        assert!(why.contains("PUT /v1/provider-credentials/"), "{why}");
        scene.app.advance(30);
        scene.app.drain().await;
        let done = &scene.evaluations().await[0];
        assert_eq!((&done["status"], &done["score"], &done["error"]), (&json!("failed"), &Value::Null, &json!(why)));
        assert_eq!((scene.own.count(), scene.platform.count(), scene.used().await), (1, 0, json!(0)));
        scene.store_credential("openai", json!({})).await.ok();
        assert_eq!(scene.get(&rule).await["paused_reason"], Value::Null);
        scene.app.full_key().post(&format!("{rule}/backfill"), &json!({})).await.ok();
        scene.app.drain().await;
        assert_eq!((statuses(&scene.evaluations().await), scene.used().await), (vec!["complete", "failed"], json!(1)));
        scene.stop().await;
    }

    /// The judge is selected at the time of the evaluation, according to the plan of that time.
    async fn a_plan(on: On) {
        let scene = Scene::on(on, Plan::Pro, &[]).await;
        let trace = scene.say().await;
        let waiting = scene.want(&trace, METRIC, json!({})).await;
        scene.app.set_plan(Plan::Team).await;
        scene.app.drain().await;
        let done = scene.get(&waiting).await;
        assert_eq!(done["status"], "failed", "{done}");
        assert!(done["error"].as_str().unwrap().contains("PUT /v1/provider-credentials/"), "{done}");
        assert_eq!((scene.platform.count(), scene.used().await), (0, json!(0)));
        for (before, after, own, platform) in [(Plan::Pro, Plan::Team, 1, 0), (Plan::Team, Plan::Pro, 0, 1)] {
            scene.app.set_plan(Plan::Team).await;
            scene.store_credential("openai", json!({})).await.ok();
            scene.app.set_plan(before).await;
            let waiting = scene.want(&trace, METRIC, json!({})).await;
            scene.app.set_plan(after).await;
            scene.app.drain().await;
            assert_eq!(scene.get(&waiting).await["status"], "complete");
            assert_eq!((scene.own.asked().len(), scene.platform.asked().len()), (own, platform), "{before} {after}");
        }
        scene.stop().await;
    }

    /// The verdict on a removed trace is dropped and uses no quota.
    async fn a_trace_while_its_judge_thinks(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let (told, thinking) = held(Mood::Well);
        scene.own.turn([thinking]);
        let trace = scene.say().await;
        let path = scene.want(&trace, METRIC, json!({})).await;
        let removing = async {
            scene.until_asked(1).await;
            assert_eq!(scene.get(&path).await["status"], "running");
            scene.app.session(Role::Owner).delete(&format!("/v1/traces/{}", trace.as_str().unwrap())).await.ok();
            assert_eq!(scene.used().await, 0);
            told.notify_one();
        };
        tokio::join!(scene.app.drain(), removing);
        scene.app.full_key().get(&path).await.is(404, "not_found");
        assert_eq!((scene.evaluations().await.len(), scene.used().await), (0, json!(0)));
        scene.app.advance(60);
        scene.app.drain().await;
        assert_eq!((scene.own.count(), scene.used().await), (1, json!(0)));
        scene.stop().await;
    }

    /// Evaluations of a removed rule remain, and pending ones are completed with the requested options.
    async fn a_rule(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let rule = scene.rule().await;
        scene.say().await;
        scene.app.drain().await;
        scene.own.turn(busy());
        scene.say().await;
        scene.app.drain().await;
        assert_eq!(scene.app.full_key().delete(&rule).await.status, 204);
        scene.app.advance(30);
        scene.app.drain().await;
        let rows = scene.evaluations().await;
        let mut found = statuses(&rows);
        found.sort_unstable();
        assert_eq!((found, scene.used().await), (vec!["complete", "complete"], json!(2)));
        assert!(rows.iter().all(|it| rule.ends_with(it["rule_id"].as_str().unwrap())), "{rows:?}");
        scene.stop().await;
    }

    async fn an_evaluator(on: On) {
        let scene = Scene::judging(on, &[]).await;
        scene.make(json!({"name": "polite", "evaluator_type": "llm", "rubric": "Is {{output}} polite?"})).await;
        let trace = scene.say().await;
        let waiting = scene.want(&trace, "polite", json!({})).await;
        assert_eq!(scene.used().await, 1);
        scene.app.session(Role::Owner).delete("/v1/evaluators/polite").await.ok();
        scene.app.drain().await;
        let done = scene.get(&waiting).await;
        assert_eq!((&done["status"], &done["score"], &done["metric_name"]), (&json!("failed"), &Value::Null, &json!("polite")));
        assert!(done["error"].as_str().unwrap().contains("`polite`"), "{done}");
        assert_eq!((scene.own.count(), scene.used().await), (0, json!(0)));
        scene.stop().await;
    }

    /// After a change of a rule, pending evaluations are completed with the requested options.
    async fn what_a_rule_wanted_before_it_was_changed(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let rule = scene.rule().await;
        scene.patch(&rule, &json!({"config": {"rubric": "Mind the old words.", "threshold": 0.9}})).await.ok();
        scene.app.advance(1);
        scene.own.turn(busy());
        scene.say().await;
        scene.app.drain().await;
        let change = json!({"metric_name": "bias", "config": {"rubric": "Mind the new words."}});
        assert_eq!(scene.patch(&rule, &change).await.ok()["metric_name"], "bias");
        scene.app.advance(30);
        scene.app.drain().await;
        let done = scene.evaluations().await.remove(0);
        assert_eq!((&done["status"], &done["metric_name"], &done["label"]), (&json!("complete"), &json!(METRIC), &json!("warn")), "{done}");
        assert!(scene.own.asked().pop().unwrap().said()[0].contains("Mind the old words."));
        scene.say().await;
        scene.fire().await;
        let done = scene.evaluations().await.remove(0);
        assert_eq!((&done["metric_name"], &done["label"]), (&json!("bias"), &json!("pass")), "{done}");
        assert!(scene.own.asked().pop().unwrap().said()[0].contains("Mind the new words."));
        scene.stop().await;
    }
}
