//! Policies: fields, limits, defaults and access.

use api::{Plan, Role};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    scene::{Scene, all},
    with_provider,
};

/// Returns the policies of the tenant, newest first.
async fn policies(scene: &Scene, query: &str) -> Vec<Value> {
    scene.get(&format!("/v1/policies?{query}")).await["policies"].as_array().unwrap().clone()
}

with_provider! {
    async fn policy_without_limits_has_defaults(scene: Scene) {
        let id = scene.policy(json!({})).await;
        let shown = scene.get(&format!("/v1/policies/{id}")).await;
        let expected = json!({
            "id": id, "project_id": scene.app.project, "name": "retry", "enabled": true, "trigger": null,
            "action_type": "retry", "action_config": {}, "require_approval": false, "max_retry_depth": 3,
            "max_cascade_depth": 5, "cooldown_seconds": 0, "daily_budget_usd": null,
            "created_at": shown["created_at"], "updated_at": shown["created_at"],
        });
        assert_eq!(shown, expected);
    }

    async fn depths_at_their_limits_are_accepted_and_beyond_rejected(scene: Scene) {
        let id = scene.policy(json!({})).await;
        for (field, depth, is_allowed) in [
            ("max_retry_depth", 0, false), ("max_retry_depth", 1, true), ("max_retry_depth", 10, true),
            ("max_retry_depth", 11, false), ("max_cascade_depth", 0, false), ("max_cascade_depth", 1, true),
            ("max_cascade_depth", 20, true), ("max_cascade_depth", 21, false),
        ] {
            for reply in [scene.new_policy(json!({field: depth})).await, scene.change_policy(&id, json!({field: depth})).await] {
                match is_allowed {
                    true => assert_eq!(reply.ok()[field], json!(depth), "{field}"),
                    false => {
                        reply.is(422, "validation_failed");
                        assert_eq!(reply.json()["fields"][0]["field"], field);
                    }
                }
            }
        }
        for depth in [json!(2.5), json!("3"), json!([3])] {
            scene.new_policy(json!({"max_retry_depth": depth})).await.is(400, "invalid_body");
        }
        scene.new_policy(json!({"max_retry_depth": null})).await.ok();
    }

    async fn policy_with_every_field_is_stored_and_changed(scene: Scene) {
        let fields = json!({
            "name": "other model", "enabled": false, "action_type": "fallback_model", "action_config": {"model": "gpt-4o-mini", "temperature": 0.5},
            "trigger": {"type": "failure", "failure_types": ["timeout", "rate_limit"]}, "require_approval": true,
            "max_retry_depth": 2, "max_cascade_depth": 4, "cooldown_seconds": 60, "daily_budget_usd": 1.5,
        });
        let id = scene.policy(fields.clone()).await;
        let path = format!("/v1/policies/{id}");
        let shown = scene.get(&path).await;
        for (field, value) in fields.as_object().unwrap() {
            assert_eq!(&shown[field], value, "{field}");
        }
        scene.app.advance(1);
        let change = json!({"trigger": {"type": "evaluation", "metric_name": "answer_relevance", "max_score": 0.4}, "daily_budget_usd": null, "enabled": true});
        let changed = scene.change_policy(&id, change.clone()).await.ok();
        assert_eq!(changed, scene.get(&path).await);
        for field in ["trigger", "daily_budget_usd", "enabled"] {
            assert_eq!(changed[field], change[field], "{field}");
        }
        assert_eq!((&changed["action_config"], &changed["cooldown_seconds"]), (&fields["action_config"], &json!(60)));
        assert_ne!(changed["updated_at"], shown["updated_at"]);
        assert_eq!(scene.change_policy(&id, json!({"trigger": null})).await.ok()["trigger"], Value::Null);
        let other = scene.app.full_key().post("/v1/projects", &json!({"name": "second"})).await.ok()["id"].clone();
        assert_eq!(scene.change_policy(&id, json!({"project_id": other})).await.ok()["project_id"], other);
        scene.change_policy(&id, json!({"project_id": Uuid::from_u128(7)})).await.is(404, "not_found");
        assert_eq!(scene.owner().delete(&path).await.status, 204);
        scene.viewer().get(&path).await.is(404, "not_found");
        scene.owner().delete(&path).await.is(404, "not_found");
        scene.change_policy(&id, json!({})).await.is(404, "not_found");
    }

    async fn policy_with_invalid_value_is_rejected_with_its_field(scene: Scene) {
        let trigger = |trigger: Value| json!({"trigger": trigger});
        let config = |kind: &str, config: Value| json!({"action_type": kind, "action_config": config});
        for (fields, expected) in [
            (json!({"name": " "}), "name"),
            (json!({"action_type": "escalate"}), "action_type"),
            (json!({"action_type": "none"}), "action_type"),
            (json!({"cooldown_seconds": -1}), "cooldown_seconds"),
            (json!({"cooldown_seconds": 604_801}), "cooldown_seconds"),
            (json!({"daily_budget_usd": 0}), "daily_budget_usd"),
            (json!({"daily_budget_usd": -1}), "daily_budget_usd"),
            (json!({"daily_budget_usd": 1e300}), "daily_budget_usd"),
            (trigger(json!({"type": "moon"})), "trigger.type"),
            (trigger(json!({"type": "failure"})), "trigger.failure_types"),
            (trigger(json!({"type": "failure", "failure_types": []})), "trigger.failure_types"),
            (trigger(json!({"type": "failure", "failure_types": ["sloth"]})), "trigger.failure_types"),
            (trigger(json!({"type": "failure", "failure_types": ["timeout"], "max_score": 1})), "trigger.max_score"),
            (trigger(json!({"type": "evaluation", "max_score": 1})), "trigger.metric_name"),
            (trigger(json!({"type": "evaluation", "metric_name": "answer_relevance"})), "trigger.max_score"),
            (trigger(json!({"type": "evaluation", "metric_name": "none", "max_score": 1})), "trigger.metric_name"),
            (trigger(json!({"type": "evaluation", "metric_name": "answer_relevance", "max_score": 7})), "trigger.max_score"),
            (trigger(json!({"type": "evaluation", "metric_name": "answer_relevance", "max_score": -0.1})), "trigger.max_score"),
            (config("retry", json!({"model": "m"})), "action_config.model"),
            (config("retry", json!({"system_suffix": "s"})), "action_config.system_suffix"),
            (config("retry", json!({"temperature": 2.1})), "action_config.temperature"),
            (config("fallback_model", json!({})), "action_config.model"),
            (config("fallback_model", json!({"model": " "})), "action_config.model"),
            (config("prompt_modification", json!({})), "action_config"),
            (config("prompt_modification", json!({"prompt_template": ""})), "action_config.prompt_template"),
            (config("prompt_modification", json!({"prompt_template": "{{system}} {{system}}"})), "action_config.prompt_template"),
            (config("prompt_modification", json!({"system_suffix": "a\u{0}b"})), "action_config.system_suffix"),
            (config("prompt_modification", json!({"system_suffix": "x".repeat(65_537)})), "action_config.system_suffix"),
        ] {
            let reply = scene.new_policy(fields.clone()).await;
            reply.is(422, "validation_failed");
            assert_eq!(reply.json()["fields"][0]["field"], expected, "{fields}");
        }
        let id = scene.policy(json!({})).await;
        // The other type requires a configuration, which the policy lacks.
        scene.change_policy(&id, json!({"action_type": "fallback_model"})).await.is(422, "validation_failed");
        scene.new_policy(json!({"project_id": Uuid::from_u128(7)})).await.is(404, "not_found");
    }

    async fn control_loop_requires_session_plan_and_role(scene: Scene) {
        let id = scene.policy(json!({"require_approval": true})).await;
        let trace = scene.trace().await;
        let action = scene.request(&trace, "retry", json!({"policy_id": id})).await.ok();
        let (policy, action) = (format!("/v1/policies/{id}"), format!("/v1/control/actions/{}", action["id"].as_str().unwrap()));
        let body = json!({"trace_id": trace, "action_type": "retry"});
        let (key, member) = (scene.app.full_key(), scene.member());
        for path in ["/v1/policies", &policy, "/v1/control/actions", &action] {
            key.get(path).await.is(403, "session_required");
        }
        key.post("/v1/control/actions", &body).await.is(403, "session_required");
        key.post(&format!("{action}/approve"), &json!({})).await.is(403, "session_required");
        for caller in [scene.viewer(), member.clone()] {
            caller.post("/v1/policies", &json!({"project_id": scene.app.project, "action_type": "retry"})).await.is(403, "forbidden_role");
            caller.delete(&policy).await.is(403, "forbidden_role");
            caller.post(&format!("{action}/approve"), &json!({})).await.is(403, "forbidden_role");
            caller.post(&format!("{action}/reject"), &json!({})).await.is(403, "forbidden_role");
        }
        scene.viewer().post("/v1/control/actions", &body).await.is(403, "forbidden_role");
        scene.app.set_plan(Plan::Pro).await;
        let owner = scene.owner();
        for reply in [
            owner.get("/v1/policies").await, owner.get(&policy).await, owner.get("/v1/control/actions").await,
            owner.get(&action).await, owner.post("/v1/control/actions", &body).await, scene.new_policy(json!({})).await,
            scene.change_policy(&id, json!({})).await, owner.post(&format!("{action}/approve"), &json!({})).await,
            owner.post(&format!("{action}/reject"), &json!({})).await,
        ] {
            reply.is(402, "plan_upgrade_required");
            assert_eq!(reply.json()["required_plan"], "team");
        }
        assert_eq!(owner.delete(&policy).await.status, 204);
    }

    async fn rows_of_other_tenant_count_as_unknown(scene: Scene) {
        let (other, key) = scene.app.other_tenant(Plan::Team).await;
        let owner = scene.app.session_of(other, Role::Owner);
        let project = key.get("/v1/projects").await.ok()["projects"][0]["id"].clone();
        let policy = owner.post("/v1/policies", &json!({"project_id": project, "action_type": "retry"})).await.ok();
        let trace = key.post("/v1/ingest", &json!({"name": "t"})).await.ok()["id"].as_str().unwrap().to_owned();
        scene.request(&trace, "retry", json!({})).await.is(404, "not_found");
        let own = scene.trace().await;
        scene.request(&own, "retry", json!({"policy_id": policy["id"]})).await.is(404, "not_found");
        scene.request(&own, "retry", json!({"span_id": Uuid::from_u128(3)})).await.is(404, "not_found");
        scene.new_policy(json!({"project_id": project})).await.is(404, "not_found");
        assert_eq!(policies(scene, "").await, Vec::<Value>::new());
        let second = scene.owner().post("/v1/projects", &json!({"name": "second"})).await.ok()["id"].clone();
        let elsewhere = scene.policy(json!({"project_id": second})).await;
        scene.request(&own, "retry", json!({"policy_id": elsewhere})).await.is(422, "validation_failed");
    }

    async fn policies_of_a_project_are_listed_newest_first(scene: Scene) {
        let second = scene.owner().post("/v1/projects", &json!({"name": "second"})).await.ok()["id"].clone();
        let mut ids = Vec::new();
        for n in 0..5 {
            scene.app.advance(1);
            ids.insert(0, json!(scene.policy(json!({"name": format!("policy {n}")})).await));
        }
        let other = scene.policy(json!({"project_id": second})).await;
        let project = scene.app.project;
        assert_eq!(all(&policies(scene, &format!("project_id={project}")).await, "id"), ids.iter().collect::<Vec<_>>());
        assert_eq!(all(&policies(scene, &format!("project_id={}", second.as_str().unwrap())).await, "id"), [&json!(other)]);
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = scene.get(&format!("/v1/policies?project_id={project}&limit=2{cursor}")).await;
            found.extend(page["policies"].as_array().unwrap().iter().map(|it| it["id"].clone()));
            let Value::String(next) = &page["next_cursor"] else { break };
            scene.viewer().get(&format!("/v1/policies?cursor={next}")).await.is(400, "invalid_cursor");
            cursor = format!("&cursor={next}");
        }
        assert_eq!(found, ids);
    }

    async fn changes_of_policies_and_actions_are_audited(scene: Scene) {
        let id = scene.policy(json!({"require_approval": true})).await;
        scene.change_policy(&id, json!({"enabled": false})).await.ok();
        let trace = scene.trace().await;
        for decision in ["approve", "reject"] {
            let action = scene.request(&trace, "retry", json!({"policy_id": id})).await.ok();
            scene.decide(&action, decision).await.ok();
        }
        scene.owner().delete(&format!("/v1/policies/{id}")).await.ok();
        scene.viewer().post("/v1/policies", &json!({})).await.is(403, "forbidden_role");
        let log = scene.owner().get("/v1/audit-log?limit=200").await.ok();
        let found: Vec<(&str, &str)> = log["audit_log"].as_array().unwrap().iter()
            .map(|it| (it["action"].as_str().unwrap(), it["result"].as_str().unwrap()))
            .filter(|it| it.0.starts_with("policy.") || it.0.starts_with("control_action.")).collect();
        let expected = [
            ("policy.create", "forbidden_role"), ("policy.delete", "ok"), ("control_action.reject", "ok"),
            ("control_action.request", "ok"), ("control_action.approve", "ok"), ("control_action.request", "ok"),
            ("policy.update", "ok"), ("policy.create", "ok"),
        ];
        assert_eq!(found, expected);
    }
}
