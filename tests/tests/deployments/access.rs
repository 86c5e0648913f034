//! Roles, plans, keys, and the separation of tenants.

use api::Plan;
use serde_json::json;
use tests::{Caller, on_both_databases};

use super::*;

on_both_databases! {
    async fn decisions_are_for_owners_and_creation_for_members(app: TestApp) {
        let body = json!({"project_id": app.project, "prompt_name": PROMPT_NAME, "template": "t"});
        app.session(Role::Viewer).post("/v1/prompts/deployments", &body).await.is(403, "forbidden_role");
        app.full_key().post("/v1/prompts/deployments", &body).await.is(403, "session_required");
        app.full_key().get("/v1/prompts/deployments").await.is(403, "session_required");
        let restricted = app.new_key(Role::Owner, &["query"]).await;
        restricted.get("/v1/prompts/deployments").await.is(403, "scope_forbidden");
        restricted.post("/v1/prompts/deployments", &body).await.is(403, "scope_forbidden");
        let made = created(app, json!({})).await;
        for decision in ["approve", "reject", "rollback"] {
            let path = format!("/v1/prompts/deployments/{}/{decision}", id(&made));
            for role in [Role::Viewer, Role::Member] {
                app.session(role).post(&path, &json!({})).await.is(403, "forbidden_role");
            }
            app.full_key().post(&path, &json!({})).await.is(403, "session_required");
        }
        assert_eq!(status(app, &made).await, "ab_passed");
        app.set_plan(Plan::Pro).await;
        for role in [Role::Member, Role::Owner] {
            app.session(role).post("/v1/prompts/deployments", &body).await.is(402, "plan_upgrade_required");
        }
        decide(app, &made, "approve").await.is(402, "plan_upgrade_required");
        app.set_plan(Plan::Team).await;
        decide(app, &made, "approve").await.ok();
    }

    async fn deployment_of_another_tenant_does_not_exist(app: TestApp) {
        let made = shipped(app, json!({})).await;
        let (tenant, _) = app.other_tenant(Plan::Team).await;
        let owner: Caller = app.session_of(tenant, Role::Owner);
        let path = format!("/v1/prompts/deployments/{}", id(&made));
        owner.get(&path).await.is(404, "not_found");
        for decision in ["approve", "reject", "rollback"] {
            owner.post(&format!("{path}/{decision}"), &json!({})).await.is(404, "not_found");
        }
        assert_eq!(owner.get("/v1/prompts/deployments").await.ok()["deployments"], json!([]));
        let body = json!({"project_id": app.project, "prompt_name": PROMPT_NAME, "template": "t"});
        owner.post("/v1/prompts/deployments", &body).await.is(404, "not_found");
        assert_eq!(status(app, &made).await, "shipped");
    }
}
