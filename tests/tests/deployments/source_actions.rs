//! Deployments from the prompt of a control action.

use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::provider::{ModelReply, with_provider};

/// Stores a trace with a model call, and requests an action on it. Returns the action after it ended.
async fn act(app: &TestApp, action_type: &str, config: Value) -> Value {
    let messages = json!([{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Hi"}]);
    let span = json!({"name": "answer", "type": "llm", "model": "gpt-4o", "input": messages.to_string(), "output": "poor",
        "prompt_tokens": 10, "completion_tokens": 5});
    let trace =
        app.full_key().post("/v1/ingest", &json!({"name": "chat", "spans": [span]})).await.ok()["id"].clone();
    let body = json!({"trace_id": trace, "action_type": action_type, "action_config": config});
    let made = app.session(Role::Member).post("/v1/control/actions", &body).await;
    assert_eq!(made.status, 202, "{}", made.text());
    app.drain().await;
    let path = format!("/v1/control/actions/{}", made.json()["id"].as_str().unwrap());
    app.session(Role::Viewer).get(&path).await.ok()
}

async fn from_action(app: &TestApp, action: &Value, fields: Value) -> Reply {
    let mut body =
        json!({"project_id": app.project, "prompt_name": PROMPT_NAME, "source_action_id": action["id"]});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    app.session(Role::Member).post("/v1/prompts/deployments", &body).await
}

with_provider! {
    async fn succeeded_prompt_modification_becomes_a_version(scene: Scene) {
        let app = &scene.app;
        scene.store_credential().await;
        let action = act(app, "prompt_modification", json!({"system_suffix": "Be kind."})).await;
        assert_eq!(action["status"], "succeeded", "{action}");
        let made = from_action(app, &action, json!({})).await.ok();
        assert_eq!((&made["template"], &made["model"], &made["source_action_id"]), (&json!("Be terse.\n\nBe kind."), &json!("gpt-4o"), &action["id"]));
        assert_eq!(scene.requests()[0]["messages"][0]["content"], made["template"]);
        assert_eq!(from_action(app, &action, json!({"model": "other"})).await.ok()["model"], "other");
        assert_eq!((from_action(app, &action, json!({"template": "t"})).await.status), 422);
    }

    async fn other_action_is_rejected(scene: Scene) {
        let app = &scene.app;
        scene.store_credential().await;
        let retry = act(app, "retry", json!({})).await;
        scene.set_replies([ModelReply::Status(400)]);
        let failed = act(app, "prompt_modification", json!({"system_suffix": "s"})).await;
        assert_eq!((&retry["status"], &failed["status"]), (&json!("succeeded"), &json!("failed")));
        for action in [&retry, &failed] {
            let reply = from_action(app, action, json!({})).await;
            reply.is(422, "validation_failed");
            assert_eq!(reply.json()["fields"][0]["field"], "source_action_id");
        }
        from_action(app, &json!({"id": Uuid::from_u128(5)}), json!({})).await.is(404, "not_found");
        scene.set_replies([ModelReply::Text("good")]);
        let action = act(app, "prompt_modification", json!({"prompt_template": "T"})).await;
        let other = app.full_key().post("/v1/projects", &json!({"name": "second"})).await.ok();
        from_action(app, &action, json!({"project_id": other["id"]})).await.is(422, "validation_failed");
        let (tenant, key) = app.other_tenant(api::Plan::Team).await;
        let project = key.get("/v1/projects").await.ok()["projects"][0]["id"].clone();
        let body = json!({"project_id": project, "prompt_name": PROMPT_NAME, "source_action_id": action["id"]});
        app.session_of(tenant, Role::Member).post("/v1/prompts/deployments", &body).await.is(404, "not_found");
    }
}
