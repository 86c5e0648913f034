//! The served prompt.

use std::time::Duration;

use serde_json::json;
use tests::on_both_databases;
use uuid::Uuid;

use super::*;

/// The arms of subjects, from the first.
async fn arms(app: &TestApp, subjects: usize) -> Vec<String> {
    let mut arms = Vec::new();
    for subject in 0..subjects {
        arms.push(served(app, &format!("subject=user-{subject}")).await["arm"].as_str().unwrap().to_owned());
    }
    arms
}

on_both_databases! {
    async fn shipped_version_is_served_with_its_tags(app: TestApp) {
        let path = format!("/v1/prompts/{PROMPT_NAME}");
        app.full_key().get(&path).await.is(404, "not_found");
        let made = created(app, json!({"template": "Say {{name}}.", "model": "gpt-4o"})).await;
        app.full_key().get(&path).await.is(404, "not_found");
        decide(app, &made, "approve").await.ok();
        assert_eq!(served(app, "").await, json!({"prompt_name": PROMPT_NAME, "project_id": app.project, "deployment_id": made["id"], "version": 1,
            "template": "Say {{name}}.", "model": "gpt-4o", "arm": null, "tags": {"prompt.name": PROMPT_NAME, "prompt.version": "1"}}));
        for unknown in ["other", "a%00b", "%2E%2E%2Fdeployments", &"x".repeat(300)] {
            app.full_key().get(&format!("/v1/prompts/{unknown}")).await;
        }
        app.full_key().get("/v1/prompts/other").await.is(404, "not_found");
        app.full_key().get(&format!("{path}?project_id={}", Uuid::from_u128(3))).await.is(404, "not_found");
        app.full_key().get(&format!("{path}?project_id=x")).await.is(400, "invalid_query");
    }

    async fn name_with_special_characters_is_served(app: TestApp) {
        let name = "support/größe v2?";
        shipped(app, json!({"prompt_name": name})).await;
        let path = "/v1/prompts/support%2Fgr%C3%B6%C3%9Fe%20v2%3F";
        assert_eq!(app.full_key().get(path).await.ok()["prompt_name"], name);
    }

    /// Every key and every role, on every plan.
    async fn any_key_or_session_gets_the_prompt(app: TestApp) {
        shipped(app, json!({})).await;
        let path = format!("/v1/prompts/{PROMPT_NAME}");
        for plan in [api::Plan::Team, api::Plan::Starter] {
            app.set_plan(plan).await;
            for role in [Role::Viewer, Role::Member, Role::Owner] {
                assert_eq!(app.session(role).get(&path).await.ok()["version"], 1);
            }
            for scopes in [&["query"][..], &[]] {
                assert_eq!(app.new_key(Role::Member, scopes).await.get(&path).await.ok()["version"], 1);
            }
        }
        app.anonymous().get(&path).await.is(401, "unauthorized");
        let (_, other) = app.other_tenant(api::Plan::Team).await;
        other.get(&path).await.is(404, "not_found");
        other.get(&format!("{path}?project_id={}", app.project)).await.is(404, "not_found");
    }

    async fn session_without_a_project_gets_that_of_the_only_one(app: TestApp) {
        shipped(app, json!({})).await;
        let path = format!("/v1/prompts/{PROMPT_NAME}");
        let viewer = app.session(Role::Viewer);
        assert_eq!(viewer.get(&path).await.ok()["project_id"], json!(app.project));
        app.full_key().post("/v1/projects", &json!({"name": "second"})).await.ok();
        viewer.get(&path).await.is(400, "invalid_query");
        assert_eq!(viewer.get(&format!("{path}?project_id={}", app.project)).await.ok()["version"], 1);
        // A key has its own project.
        assert_eq!(app.full_key().get(&path).await.ok()["version"], 1);
    }

    async fn subject_keeps_its_arm_on_every_process(app: TestApp) {
        create_metric(app).await;
        shipped(app, json!({})).await;
        let fields = json!({"template": "B", "ab": {"metric_name": METRIC_NAME, "traffic_share": 0.3}});
        let test = created(app, fields).await;
        let beside = app.beside().await;
        let first = arms(app, 100).await;
        assert_eq!((&arms(app, 20).await[..], &arms(&beside, 100).await), (&first[..20], &first));
        let candidates = first.iter().filter(|it| *it == "candidate").count();
        // Five standard deviations of the binomial distribution around 30.
        assert!((7..=53).contains(&candidates), "{candidates}");
        let mut random = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let prompt = served(app, "").await;
            let is_candidate = prompt["arm"] == "candidate";
            assert_eq!(prompt["version"], if is_candidate { 2 } else { 1 });
            assert_eq!(prompt["tags"]["prompt.version"], if is_candidate { "2" } else { "1" });
            assert_eq!(prompt["deployment_id"] == test["id"], is_candidate);
            random.insert(is_candidate);
        }
        assert_eq!(random.len(), 2);
        beside.stop().await;
    }

    async fn decision_is_served_by_other_processes_within_a_second(app: TestApp) {
        let beside = app.beside().await;
        let mut versions = Vec::new();
        for _ in 0..3 {
            versions.push(created(app, json!({"prompt_name": "other"})).await);
        }
        for made in versions {
            let version = &made["version"];
            // The other process has cached the state before.
            beside.full_key().get("/v1/prompts/other").await;
            decide(app, &made, "approve").await.ok();
            assert_eq!(app.full_key().get("/v1/prompts/other").await.ok()["version"], *version, "this process at once");
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(beside.full_key().get("/v1/prompts/other").await.ok()["version"], *version);
        }
        beside.stop().await;
    }

    async fn requests_count_to_their_own_rate_limit(app: TestApp) {
        app.set_plan(api::Plan::Starter).await;
        let key = app.full_key();
        let reply = key.send(key.request(reqwest::Method::GET, "/v1/prompts/none")).await;
        assert_eq!(reply.status, 404);
        assert_eq!(reply.headers["x-ratelimit-limit"], "6000");
    }
}
