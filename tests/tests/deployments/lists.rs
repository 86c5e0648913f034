//! Lists of deployments.

use serde_json::{Value, json};
use tests::on_both_databases;

use super::*;

async fn listed(app: &TestApp, query: &str) -> Vec<Value> {
    let list = app.session(Role::Viewer).get(&format!("/v1/prompts/deployments?{query}")).await.ok();
    list["deployments"].as_array().unwrap().iter().map(|it| it["id"].clone()).collect()
}

on_both_databases! {
    async fn list_has_filters_and_pages(app: TestApp) {
        let mut made = Vec::new();
        for name in ["a", "b", "a", "b", "a"] {
            app.advance(1);
            made.push(created(app, json!({"prompt_name": name})).await["id"].clone());
        }
        decide(app, &json!({"id": made[0]}), "approve").await.ok();
        made.reverse();
        assert_eq!(listed(app, "").await, made);
        assert_eq!(listed(app, "prompt_name=b").await, [made[1].clone(), made[3].clone()]);
        assert_eq!(listed(app, "status=shipped").await, [made[4].clone()]);
        assert_eq!(listed(app, &format!("project_id={}&status=ab_passed", app.project)).await, made[..4]);
        assert_eq!(listed(app, &format!("project_id={}", app.tenant)).await, Vec::<Value>::new());
        let viewer = app.session(Role::Viewer);
        let first = viewer.get("/v1/prompts/deployments?limit=2").await.ok();
        let cursor = first["next_cursor"].as_str().unwrap();
        // A new row does not move the pages.
        created(app, json!({})).await;
        let second = listed(app, &format!("limit=2&cursor={cursor}")).await;
        assert_eq!((second, &first["has_more"]), (made[2..4].to_vec(), &json!(true)));
        viewer.get(&format!("/v1/prompts/deployments?status=shipped&cursor={cursor}")).await.is(400, "invalid_cursor");
        viewer.get("/v1/prompts/deployments?status=flying").await.is(400, "invalid_query");
        viewer.get("/v1/prompts/deployments?limit=0").await.is(400, "invalid_query");
        viewer.get("/v1/prompts/deployments?project_id=x").await.is(400, "invalid_query");
    }
}
