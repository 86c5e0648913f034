//! Replay tests with a provider on the loopback address.

use entities::prompt_replay;
use reqwest::Method;
use sea_orm::{ColumnTrait, QueryFilter};
use serde_json::json;
use tests::on_both_databases;

use super::*;
use crate::provider::{ModelReply, Scene, with_provider};

/// Stores traces of version 1 with one model call each, with these outputs.
async fn calls(app: &TestApp, outputs: &[&str]) -> Vec<String> {
    calls_with(app, outputs, json!({"gen_ai.request.temperature": 0.25})).await
}

/// Stores traces of version 1 with one model call each, with these outputs and this metadata.
async fn calls_with(app: &TestApp, outputs: &[&str], metadata: Value) -> Vec<String> {
    let tags = json!({"prompt.name": PROMPT_NAME, "prompt.version": "1"});
    let mut ids = Vec::new();
    for (number, output) in outputs.iter().enumerate() {
        let messages = json!([{"role": "system", "content": "Greet the user."}, {"role": "user", "content": format!("I am {number}")}]);
        let span = json!({"name": "answer", "type": "llm", "model": "gpt-4o", "input": messages.to_string(), "output": output,
            "prompt_tokens": 10, "completion_tokens": 5, "metadata": metadata});
        let item = json!({"name": "chat", "output": output, "tags": tags, "spans": [span]});
        ids.push(app.full_key().post("/v1/ingest", &item).await.ok()["id"].as_str().unwrap().to_owned());
        app.advance(1);
    }
    ids
}

/// Creates the metric and the credential, and ships version 1.
async fn ship_first_version(scene: &Scene) {
    create_metric(&scene.app).await;
    scene.store_credential().await;
    shipped(&scene.app, json!({})).await;
}

/// Ships version 1, and stores traces of it with these outputs, which an eval rule evaluates.
async fn score_calls(scene: &Scene, outputs: &[&str]) {
    let app = &scene.app;
    evaluate_traces(app).await;
    scene.store_credential().await;
    shipped(app, json!({})).await;
    calls(app, outputs).await;
    app.advance(60);
    app.drain().await;
}

async fn replay(app: &TestApp, fields: Value) -> Reply {
    let mut body = json!({"template": "Greet warmly.", "mode": "replay", "ab": {"metric_name": METRIC_NAME, "min_samples": 10}});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    create(app, body).await
}

with_provider! {
    async fn better_candidate_passes_on_stored_inputs(scene: Scene) {
        let app = &scene.app;
        ship_first_version(scene).await;
        calls(app, &outputs(3, 9)).await;
        let made = replay(app, json!({"model": "gpt-4o-mini"})).await.ok();
        assert_eq!((&made["status"], &made["mode"]), (&json!("ab_running"), &json!("replay")));
        assert_eq!(served(app, "subject=x").await["arm"], json!(null), "a replay gets no traffic");
        app.drain().await;
        let passed = shown(app, &made).await;
        let ab = &passed["ab"];
        assert_eq!((&passed["status"], &ab["baseline"]["n"], &ab["candidate"]["n"]), (&json!("ab_passed"), &json!(10), &json!(10)), "{passed}");
        // The ten newest of twelve traces: one good output of the baseline.
        assert_eq!((&ab["candidate"]["mean"], &ab["baseline"]["mean"]), (&json!(1.0), &json!(0.1)));
        let requests = scene.requests();
        assert_eq!(requests.len(), 10);
        for request in &requests {
            assert_eq!((&request["model"], &request["temperature"]), (&json!("gpt-4o-mini"), &json!(0.25)));
            assert_eq!(request["messages"].as_array().unwrap().len(), 2);
            assert_eq!(request["messages"][0], json!({"role": "system", "content": "Greet warmly."}));
            assert!(request["messages"][1]["content"].as_str().unwrap().starts_with("I am "));
        }
        // The scores of a replay are not stored as evaluations.
        assert_eq!(app.full_key().get("/v1/eval").await.ok()["evaluations"], json!([]));
    }

    async fn equal_candidate_fails(scene: Scene) {
        let app = &scene.app;
        ship_first_version(scene).await;
        calls(app, &outputs(4, 0)).await;
        let made = replay(app, json!({})).await.ok();
        app.drain().await;
        let failed = shown(app, &made).await;
        assert_eq!((&failed["status"], &failed["ab"]["effect"]), (&json!("ab_failed"), &json!(0.0)));
        assert_eq!(scene.requests()[0]["model"], "gpt-4o");
    }

    /// A stored score of the baseline is used again.
    async fn stored_score_of_the_baseline_is_used(scene: Scene) {
        let app = &scene.app;
        score_calls(scene, &outputs(1, 3)).await;
        let made = replay(app, json!({})).await.ok();
        app.drain().await;
        let done = shown(app, &made).await;
        assert_eq!((&done["status"], &done["ab"]["baseline"]["mean"]), (&json!("ab_passed"), &json!(0.25)), "{done}");
    }

    /// The stored scores would compare a stricter evaluator with a more lenient one.
    async fn stored_scores_of_another_evaluator_version_are_not_used(scene: Scene) {
        let app = &scene.app;
        score_calls(scene, &outputs(1, 3)).await;
        let path = format!("/v1/evaluators/{METRIC_NAME}");
        let checks = json!([{"kind": "contains", "text": "o"}]);
        let key = app.full_key();
        key.send(key.request(Method::PATCH, &path).json(&json!({"checks": checks}))).await.ok();
        let made = replay(app, json!({"ab": {"metric_name": METRIC_NAME, "min_samples": 10, "max_regression": 0.5}})).await.ok();
        app.drain().await;
        let done = shown(app, &made).await;
        // Both words contain an o.
        assert_eq!((&done["status"], &done["ab"]["baseline"]["mean"]), (&json!("ab_passed"), &json!(1.0)), "{done}");
    }

    async fn provider_failures_fail_the_test_with_the_reason(scene: Scene) {
        let app = &scene.app;
        ship_first_version(scene).await;
        calls(app, &outputs(0, 4)).await;
        scene.set_replies([ModelReply::Status(401)]);
        let made = replay(app, json!({})).await.ok();
        app.drain().await;
        let failed = shown(app, &made).await;
        assert_eq!(failed["status"], "ab_failed");
        let reason = failed["reason"].as_str().unwrap();
        assert!(reason.contains("0, and 4 failed") && reason.contains("the provider"), "{reason}");
        assert!(!reason.contains("sk-test"), "{reason}");
    }

    async fn temporary_failure_of_the_provider_is_repeated(scene: Scene) {
        let app = &scene.app;
        ship_first_version(scene).await;
        calls(app, &outputs(0, 2)).await;
        scene.set_replies([ModelReply::Status(500), ModelReply::Status(503), ModelReply::Text("good")]);
        let made = replay(app, json!({})).await.ok();
        for _ in 0..4 {
            app.drain().await;
            app.advance(30);
        }
        let done = shown(app, &made).await;
        assert_eq!((&done["status"], &done["ab"]["candidate"]["n"]), (&json!("ab_passed"), &json!(2)), "{done}");
        assert_eq!(scene.requests().len(), 4);
    }

    /// The worker is lost during the first call.
    async fn interrupted_call_is_not_repeated(scene: Scene) {
        let app = &scene.app;
        ship_first_version(scene).await;
        calls(app, &outputs(0, 4)).await;
        scene.set_replies([ModelReply::Nothing, ModelReply::Text("good")]);
        let made = replay(app, json!({})).await.ok();
        let lost = scene.beside().await;
        lost.app.start_workers();
        while scene.requests().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        lost.stop().await;
        app.advance(600);
        app.drain().await;
        let done = shown(app, &made).await;
        assert_eq!((&done["status"], &done["ab"]["candidate"]["n"]), (&json!("ab_passed"), &json!(3)), "{done}");
        assert_eq!(scene.requests().len(), 4, "each pair was called once");
        let pairs = prompt_replay::Entity::find().filter(prompt_replay::Column::TenantId.eq(app.tenant));
        let pairs = pairs.all(&app.app.db.write).await.unwrap();
        let interrupted: Vec<_> = pairs.iter().filter(|it| it.status == "failed").collect();
        assert_eq!((interrupted.len(), interrupted[0].attempts), (1, 1));
        assert!(interrupted[0].error.as_ref().unwrap().contains("not repeated"), "{interrupted:?}");
    }

    async fn deleted_trace_and_rejection_end_pairs(scene: Scene) {
        let app = &scene.app;
        ship_first_version(scene).await;
        let ids = calls(app, &outputs(0, 3)).await;
        let made = replay(app, json!({})).await.ok();
        assert_eq!(app.full_key().delete(&format!("/v1/traces/{}", ids[0])).await.status, 204);
        app.drain().await;
        let done = shown(app, &made).await;
        assert_eq!((&done["status"], &done["ab"]["candidate"]["n"]), (&json!("ab_passed"), &json!(2)));
        decide(app, &made, "reject").await.ok();
        let made = replay(app, json!({})).await.ok();
        decide(app, &made, "reject").await.ok();
        app.drain().await;
        assert_eq!(scene.requests().len(), 2, "a rejected test calls nothing");
    }

    /// The response names a model that the provider may not know: a deployment has a name of its own.
    async fn requested_model_is_called_again(scene: Scene) {
        let app = &scene.app;
        ship_first_version(scene).await;
        calls_with(app, &outputs(0, 2), json!({"request_model": "gpt-4o-support"})).await;
        let made = replay(app, json!({})).await.ok();
        app.drain().await;
        assert_eq!(status(app, &made).await, "ab_passed");
        assert!(scene.requests().iter().all(|it| it["model"] == "gpt-4o-support"));
    }

    async fn replay_with_few_traces_is_rejected(scene: Scene) {
        let app = &scene.app;
        ship_first_version(scene).await;
        calls(app, &outputs(0, 4)).await;
        let samples = |number: u32| json!({"ab": {"metric_name": METRIC_NAME, "min_samples": number}});
        let reply = replay(app, samples(21)).await;
        reply.is(422, "validation_failed");
        assert!(reply.text().contains("at least 5 traces") && reply.text().contains("there are 4"), "{}", reply.text());
        replay(app, samples(20)).await.ok();
    }

    async fn replay_without_a_credential_is_rejected(scene: Scene) {
        let app = &scene.app;
        create_metric(app).await;
        shipped(app, json!({})).await;
        calls(app, &outputs(0, 3)).await;
        let reply = replay(app, json!({})).await;
        reply.is(422, "provider_credentials_missing");
        assert!(reply.text().contains("/v1/provider-credentials/openai"), "{}", reply.text());
    }
}

on_both_databases! {
    async fn replay_without_recorded_messages_is_rejected(app: TestApp) {
        create_metric(app).await;
        shipped(app, json!({})).await;
        ingest(app, 1, &outputs(0, 3)).await;
        let reply = replay(app, json!({})).await;
        reply.is(422, "validation_failed");
        assert_eq!(reply.json()["fields"][0]["field"], "mode");
        // A metric that needs a configuration, which no rule of the project has.
        let reply = replay(app, json!({"ab": {"metric_name": "latency_threshold"}})).await;
        reply.is(422, "validation_failed");
        assert_eq!(reply.json()["fields"][0]["field"], "ab.metric_name");
        assert!(reply.text().contains("max_latency_ms") && reply.text().contains("eval rule"), "{}", reply.text());
    }
}
