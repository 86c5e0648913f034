//! The selection of the judge as seen in its requests: by plan, by the preference of the evaluator, and by
//! model tier.

use super::{over_http::METRIC, *};

/// The key of a provider of the other kind, on the tenant's and on the platform's server.
const OTHER_KEY: &str = "sk-canary-of-the-other";

/// Returns path, key and model of the requests to a provider.
fn who(asked: &[provider::Asked]) -> Vec<(&str, &str, &str)> {
    asked.iter().map(|it| (it.path.as_str(), it.key.as_str(), it.body["model"].as_str().unwrap())).collect()
}

on_both! {
    async fn judge_provider_follows_from_plan(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let path = "/v1/chat/completions";
        for plan in [Plan::Starter, Plan::Pro, Plan::Team, Plan::Business, Plan::Enterprise] {
            scene.app.set_plan(plan).await;
            let done = scene.evaluated().await.1;
            assert_eq!(done["status"], "complete", "{plan}: {done}");
            let (platform, own) = (scene.platform.asked(), scene.own.asked());
            let (asked, expected) = match plan {
                Plan::Starter | Plan::Pro => (who(&platform), (path, PLATFORM_KEY, "platform-cheap")),
                _ => (who(&own), (path, KEY, "gpt-4o")),
            };
            assert_eq!(asked, [expected], "{plan}");
            assert_eq!((platform.len() + own.len(), &done["judge_model"]), (1, &json!(expected.2)), "{plan}");
        }
        scene.stop().await;
    }

    async fn from_team_on_the_platforms_provider_is_never_asked(on: On) {
        let scene = Scene::on(on, Plan::Team, &[]).await;
        let (rule, key) = (scene.rule().await, scene.app.full_key());
        for plan in [Plan::Team, Plan::Business, Plan::Enterprise] {
            scene.app.set_plan(plan).await;
            let trace = scene.say().await;
            scene.fire().await;
            for (path, body) in [
                ("/v1/eval", json!({"trace_id": trace, "metric_name": METRIC})),
                ("/v1/eval/bulk", json!({"metric_name": METRIC})),
                (&format!("{rule}/test"), json!({"trace_id": trace})),
                (&format!("{rule}/backfill"), json!({})),
            ] {
                key.post(path, &body).await.is(422, "provider_credentials_missing");
            }
            let decided = scene.get(&format!("{rule}/decisions?trace_id={}", trace.as_str().unwrap())).await;
            assert_eq!(decided["decisions"][0]["decision"], "paused", "{plan}: {decided}");
        }
        assert_eq!((scene.platform.count(), scene.evaluations().await.len()), (0, 0));
        scene.stop().await;
    }

    async fn evaluator_prefers_its_judge_provider(on: On) {
        let platforms = Provider::start().await;
        let url = platforms.url();
        let flags = ["--judge-anthropic-api-key", OTHER_KEY, "--judge-anthropic-base-url", &url, "--judge-anthropic-cheap-model", "platform-other"];
        let scene = Scene::judging(on, &flags).await;
        scene.store_credential("anthropic", json!({"api_key": OTHER_KEY, "judge_model_cheap": "own-other"})).await.ok();
        scene.make(json!({"name": "polite", "evaluator_type": "llm", "rubric": "Is {{output}} polite?"})).await;
        let trace = scene.say().await;
        let (openai, anthropic) = ("/v1/chat/completions", "/v1/messages");
        // A custom evaluator has no preference.
        for (metric, path, key) in [(METRIC, openai, KEY), ("bias", anthropic, OTHER_KEY), ("polite", openai, KEY)] {
            scene.app.set_plan(Plan::Team).await;
            assert_eq!(scene.judged(&trace, metric, json!({})).await["status"], "complete");
            let model = if path == openai { "gpt-4o" } else { "own-other" };
            assert_eq!(who(&scene.own.asked()), [(path, key, model)], "{metric}");
            scene.app.set_plan(Plan::Pro).await;
            assert_eq!(scene.judged(&trace, metric, json!({})).await["status"], "complete");
            let (asked, other) = (scene.platform.asked(), platforms.asked());
            match path == openai {
                true => assert_eq!((who(&asked), other.len()), (vec![(path, PLATFORM_KEY, "platform-cheap")], 0), "{metric}"),
                false => assert_eq!((who(&other), asked.len()), (vec![(path, OTHER_KEY, "platform-other")], 0), "{metric}"),
            }
        }
        // If only the other provider is available, it is used.
        scene.app.set_plan(Plan::Team).await;
        scene.app.session(Role::Owner).delete("/v1/provider-credentials/openai").await.ok();
        for metric in [METRIC, "bias", "polite"] {
            assert_eq!(scene.judged(&trace, metric, json!({})).await["status"], "complete");
            assert_eq!(who(&scene.own.asked()), [(anthropic, OTHER_KEY, "own-other")], "{metric}");
        }
        scene.stop().await;
    }

    /// On request, in bulk, by a rule, in its test and in its backfill.
    async fn premium_asks_the_premium_model(on: On) {
        let scene = Scene::on(on, Plan::Team, &[]).await;
        let models = json!({"judge_model_cheap": "own-cheap", "judge_model_premium": "own-premium"});
        scene.store_credential("openai", models).await.ok();
        let key = scene.app.full_key();
        for (plan, model) in [(Plan::Pro, "platform-premium"), (Plan::Team, "own-premium")] {
            scene.app.set_plan(plan).await;
            let trace = scene.say().await;
            let before = scene.evaluations().await.len();
            let one = scene.judged(&trace, METRIC, json!({"model_tier": "premium"})).await;
            assert_eq!(one["status"], "complete", "{one}");
            let filter = json!({"from": one["created_at"]});
            key.post("/v1/eval/bulk", &json!({"metric_name": METRIC, "model_tier": "premium", "filter": filter})).await.ok();
            scene.app.drain().await;
            let rule = scene.rule().await;
            scene.patch(&rule, &json!({"model_tier": "premium"})).await.ok();
            scene.app.advance(1);
            scene.say().await;
            scene.fire().await;
            let tried = key.post(&format!("{rule}/test"), &json!({"trace_id": trace})).await.ok();
            assert_eq!(tried["judge_model"], model, "{tried}");
            key.post(&format!("{rule}/backfill"), &filter).await.ok();
            scene.app.drain().await;
            let new = scene.evaluations().await.len() - before;
            let rows = scene.evaluations().await;
            assert!(rows[..new].iter().all(|it| it["model_tier"] == "premium" && it["judge_model"] == model), "{rows:?}");
            let asked = [scene.platform.asked(), scene.own.asked()].concat();
            assert_eq!((new, asked.len()), (4, 5), "a test is not stored");
            assert!(asked.iter().all(|it| it.body["model"] == model), "{:?}", who(&asked));
            key.delete(&rule).await.ok();
        }
        scene.stop().await;
    }
}
