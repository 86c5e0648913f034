//! Plans, roles and tenants.

use api::{Plan, Role};
use serde_json::json;
use server::{clock::Clock, subscriptions::Subscriptions, webhooks::publish};

use crate::{
    installation::{WEBHOOK_SECRET, event},
    receiver::Response,
    with_receivers,
};

with_receivers! {
    /// Members can create and test webhooks, only owners can delete them, and the plan must be Pro or above.
    async fn roles_and_plans_are_those_of_the_specification(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        let app = &home.app;
        let body = json!({"url": receiver.url(), "secret": WEBHOOK_SECRET});
        let (viewer, member, owner) = (app.session(Role::Viewer), app.session(Role::Member), app.session(Role::Owner));
        app.set_plan(Plan::Pro).await;
        viewer.post("/v1/webhooks", &body).await.is(403, "forbidden_role");
        let id = member.post("/v1/webhooks", &body).await.ok()["id"].as_str().unwrap().to_owned();
        let (path, test) = (format!("/v1/webhooks/{id}"), format!("/v1/webhooks/{id}/test"));
        assert_eq!(viewer.get("/v1/webhooks").await.ok()["webhooks"][0]["id"], id);
        viewer.post(&test, &json!({})).await.is(403, "forbidden_role");
        assert_eq!(member.post(&test, &json!({})).await.ok()["status"], 200);
        member.delete(&path).await.is(403, "forbidden_role");
        let query = app.new_key(Role::Owner, &["query"]).await;
        query.post(&test, &json!({})).await.is(403, "scope_forbidden");

        let (_, others) = app.other_tenant(Plan::Pro).await;
        others.post(&test, &json!({})).await.is(404, "not_found");
        others.get(&path).await.is(404, "not_found");
        others.delete(&path).await.is(404, "not_found");

        app.set_plan(Plan::Starter).await;
        let low = member.post(&test, &json!({})).await;
        low.is(403, "plan_forbidden");
        assert_eq!(low.json()["required_plan"], "pro");
        viewer.post(&test, &json!({})).await.is(403, "forbidden_role");
        member.post("/v1/webhooks", &body).await.is(402, "plan_upgrade_required");
        member.get("/v1/webhooks").await.is(402, "plan_upgrade_required");
        assert_eq!(receiver.received().len(), 1);
        assert_eq!(owner.delete(&path).await.status, 204);
    }

    /// Webhooks are kept when the plan is lowered, and receive events again when the plan is restored.
    async fn lowered_plan_stops_deliveries(home: Installation) {
        let receiver = home.receiver(|_, before| Response::Status(if before == 0 { 500 } else { 200 })).await;
        let id = home.webhook(&receiver).await;
        home.publish(0..1).await;
        home.app.drain().await;
        home.app.set_plan(Plan::Starter).await;
        home.publish(1..2).await;
        home.app.advance(60);
        home.app.drain().await;
        assert_eq!(receiver.received().len(), 1);
        home.app.set_plan(Plan::Pro).await;
        home.publish(2..3).await;
        home.app.drain().await;
        assert_eq!(receiver.received().len(), 2);
        assert_eq!(receiver.received()[1].json()["data"]["number"], 2);
        let statuses: Vec<_> = home.deliveries(&id).await.iter().map(|it| it["status"].clone()).collect();
        assert_eq!(statuses, ["delivered", "cancelled"]);
    }

    /// Another process raises the plan. This process still has the lower plan in its cache when an event is published.
    async fn event_published_after_an_upgrade_is_delivered(home: Installation) {
        let receiver = home.receiver(|_, _| Response::Status(200)).await;
        let id = home.webhook(&receiver).await;
        let (app, tenant) = (&home.app.app, home.app.tenant);
        home.app.set_plan(Plan::Starter).await;
        assert_eq!(app.access_cache.tenant(tenant).await.unwrap().unwrap().plan, "starter");
        let txn = app.db.begin().await.unwrap();
        store::tenants::set_plan(&txn, tenant, Plan::Pro).await.unwrap();
        let subscriptions = Subscriptions::read(&txn, tenant).await.unwrap();
        publish(&txn, &subscriptions, tenant, &[event(json!({"number": 0}))], home.app.clock.now()).await.unwrap();
        txn.commit().await.unwrap();
        home.app.drain().await;
        while receiver.received().is_empty() {
            assert_eq!(home.deliveries(&id).await[0]["status"], "pending");
            home.app.advance(1);
            home.app.drain().await;
        }
        assert_eq!(home.deliveries(&id).await[0]["status"], "delivered");
    }
}
