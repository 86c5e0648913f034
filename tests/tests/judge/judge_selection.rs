//! The selection of the judge as seen in its requests: by plan, by the preference of the evaluator, and by
//! model tier.

use super::{over_http::METRIC_NAME, *};

/// The key of a provider of the other kind, on the tenant's and on the platform's server.
const OTHER_KEY: &str = "sk-canary-of-the-other";

/// Returns path, key and model of the requests to a provider.
fn request_summaries(requests: &[provider::ReceivedRequest]) -> Vec<(&str, &str, &str)> {
    requests
        .iter()
        .map(|it| (it.path.as_str(), it.key.as_str(), it.body["model"].as_str().unwrap()))
        .collect()
}

on_both! {
    async fn judge_provider_follows_from_plan(on: On) {
        let scene = Scene::judging(on, &[]).await;
        let path = "/v1/chat/completions";
        for plan in [Plan::Starter, Plan::Pro, Plan::Team, Plan::Business, Plan::Enterprise] {
            scene.app.set_plan(plan).await;
            let done = scene.evaluate_once().await.1;
            assert_eq!(done["status"], "complete", "{plan}: {done}");
            let (platform, own) = (scene.platform.take_requests(), scene.own.take_requests());
            let (requests, expected) = match plan {
                Plan::Starter | Plan::Pro => (request_summaries(&platform), (path, PLATFORM_KEY, "platform-cheap")),
                _ => (request_summaries(&own), (path, TENANT_KEY, "gpt-4o")),
            };
            assert_eq!(requests, [expected], "{plan}");
            assert_eq!((platform.len() + own.len(), &done["judge_model"]), (1, &json!(expected.2)), "{plan}");
        }
        scene.stop().await;
    }

    async fn platform_judge_is_not_used_from_plan_team(on: On) {
        let scene = Scene::on(on, Plan::Team, &[]).await;
        let (rule, key) = (scene.create_rule().await, scene.app.full_key());
        for plan in [Plan::Team, Plan::Business, Plan::Enterprise] {
            scene.app.set_plan(plan).await;
            let trace = scene.store_trace().await;
            scene.fire_rules().await;
            for (path, body) in [
                ("/v1/eval", json!({"trace_id": trace, "metric_name": METRIC_NAME})),
                ("/v1/eval/bulk", json!({"metric_name": METRIC_NAME})),
                (&format!("{rule}/test"), json!({"trace_id": trace})),
                (&format!("{rule}/backfill"), json!({})),
            ] {
                key.post(path, &body).await.is(422, "provider_credentials_missing");
            }
            let decided = scene.get(&format!("{rule}/decisions?trace_id={}", trace.as_str().unwrap())).await;
            assert_eq!(decided["decisions"][0]["decision"], "paused", "{plan}: {decided}");
        }
        assert_eq!((scene.platform.request_count(), scene.evaluations().await.len()), (0, 0));
        scene.stop().await;
    }

    async fn evaluator_prefers_its_judge_provider(on: On) {
        let platforms = Provider::start().await;
        let url = platforms.url();
        let flags = ["--judge-anthropic-api-key", OTHER_KEY, "--judge-anthropic-base-url", &url, "--judge-anthropic-cheap-model", "platform-other"];
        let scene = Scene::judging(on, &flags).await;
        scene.store_credential("anthropic", json!({"api_key": OTHER_KEY, "judge_model_cheap": "own-other"})).await.ok();
        scene.create_evaluator(json!({"name": "polite", "evaluator_type": "llm", "rubric": "Is {{output}} polite?"})).await;
        let trace = scene.store_trace().await;
        let (openai, anthropic) = ("/v1/chat/completions", "/v1/messages");
        // A custom evaluator has no preference.
        for (metric, path, key) in [(METRIC_NAME, openai, TENANT_KEY), ("bias", anthropic, OTHER_KEY), ("polite", openai, TENANT_KEY)] {
            scene.app.set_plan(Plan::Team).await;
            assert_eq!(scene.evaluate_trace(&trace, metric, json!({})).await["status"], "complete");
            let model = if path == openai { "gpt-4o" } else { "own-other" };
            assert_eq!(request_summaries(&scene.own.take_requests()), [(path, key, model)], "{metric}");
            scene.app.set_plan(Plan::Pro).await;
            assert_eq!(scene.evaluate_trace(&trace, metric, json!({})).await["status"], "complete");
            let (requests, other) = (scene.platform.take_requests(), platforms.take_requests());
            match path == openai {
                true => assert_eq!((request_summaries(&requests), other.len()), (vec![(path, PLATFORM_KEY, "platform-cheap")], 0), "{metric}"),
                false => assert_eq!((request_summaries(&other), requests.len()), (vec![(path, OTHER_KEY, "platform-other")], 0), "{metric}"),
            }
        }
        // If only the other provider is available, it is used.
        scene.app.set_plan(Plan::Team).await;
        scene.app.session(Role::Owner).delete("/v1/provider-credentials/openai").await.ok();
        for metric in [METRIC_NAME, "bias", "polite"] {
            assert_eq!(scene.evaluate_trace(&trace, metric, json!({})).await["status"], "complete");
            assert_eq!(request_summaries(&scene.own.take_requests()), [(anthropic, OTHER_KEY, "own-other")], "{metric}");
        }
        scene.stop().await;
    }

    /// The tier applies to evaluations on request, in bulk, by a rule, in a rule's test and in a backfill.
    async fn premium_tier_uses_the_premium_model(on: On) {
        let scene = Scene::on(on, Plan::Team, &[]).await;
        let models = json!({"judge_model_cheap": "own-cheap", "judge_model_premium": "own-premium"});
        scene.store_credential("openai", models).await.ok();
        let key = scene.app.full_key();
        for (plan, model) in [(Plan::Pro, "platform-premium"), (Plan::Team, "own-premium")] {
            scene.app.set_plan(plan).await;
            let trace = scene.store_trace().await;
            let before = scene.evaluations().await.len();
            let one = scene.evaluate_trace(&trace, METRIC_NAME, json!({"model_tier": "premium"})).await;
            assert_eq!(one["status"], "complete", "{one}");
            let filter = json!({"from": one["created_at"]});
            key.post("/v1/eval/bulk", &json!({"metric_name": METRIC_NAME, "model_tier": "premium", "filter": filter})).await.ok();
            scene.app.drain().await;
            let rule = scene.create_rule().await;
            scene.patch(&rule, &json!({"model_tier": "premium"})).await.ok();
            scene.app.advance(1);
            scene.store_trace().await;
            scene.fire_rules().await;
            let tried = key.post(&format!("{rule}/test"), &json!({"trace_id": trace})).await.ok();
            assert_eq!(tried["judge_model"], model, "{tried}");
            key.post(&format!("{rule}/backfill"), &filter).await.ok();
            scene.app.drain().await;
            let new = scene.evaluations().await.len() - before;
            let rows = scene.evaluations().await;
            assert!(rows[..new].iter().all(|it| it["model_tier"] == "premium" && it["judge_model"] == model), "{rows:?}");
            let requests = [scene.platform.take_requests(), scene.own.take_requests()].concat();
            assert_eq!((new, requests.len()), (4, 5), "the rule test stored an evaluation");
            assert!(requests.iter().all(|it| it.body["model"] == model), "{:?}", request_summaries(&requests));
            key.delete(&rule).await.ok();
        }
        scene.stop().await;
    }
}
