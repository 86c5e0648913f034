//! The access cache of a process, and the delay until it learns of changes by another process.

use std::time::Duration;

use api::{Plan, Role};
use serde_json::json;
use tests::{On, Reply, TestApp, hang::wait_until};

/// Repeats a request until the response is as expected.
async fn wait_for_response(send: impl AsyncFn() -> Reply, expected: (u16, &str)) {
    wait_until(&format!("the response is {expected:?}"), async || {
        let reply = send().await;
        (reply.status, reply.code().unwrap_or_default().as_str()) == expected
    })
    .await;
}

/// Starts a server and another one on the same database.
async fn two_servers(database: On) -> (TestApp, TestApp) {
    let here = TestApp::with(database, Plan::Starter, &[]).await;
    let there = here.beside().await;
    (here, there)
}

async fn access_change_reaches_other_processes(database: On) {
    let (here, there) = two_servers(database).await;
    let owner = here.session(Role::Owner);
    let made = owner.post("/v1/apikeys", &json!({"name": "k"})).await.ok();
    let key = there.bearer(made["secret"].as_str().unwrap());
    key.get("/v1/me").await.ok();
    owner.delete(&format!("/v1/apikeys/{}", made["id"].as_str().unwrap())).await.ok();
    here.bearer(made["secret"].as_str().unwrap()).get("/v1/me").await.is(401, "unauthorized");
    wait_for_response(|| key.get("/v1/me"), (401, "unauthorized")).await;

    // Archives and unarchives a project that the other process has used.
    let full = there.full_key();
    owner.post("/v1/projects", &json!({"name": "other"})).await.ok();
    full.post("/v1/ingest", &json!({})).await.ok();
    let path = format!("/v1/projects/{}", here.project);
    owner.post(&format!("{path}/archive"), &json!({})).await.ok();
    wait_for_response(async || full.post("/v1/ingest", &json!({})).await, (403, "error.project.archived"))
        .await;
    owner.post(&format!("{path}/unarchive"), &json!({})).await.ok();
    wait_for_response(async || full.post("/v1/ingest", &json!({})).await, (201, "")).await;

    // Changes the plan.
    assert_eq!(full.get("/v1/traces").await.headers["x-ratelimit-limit"], "3600");
    here.set_plan(Plan::Enterprise).await;
    wait_until("the rate limit is that of the new plan", async || {
        full.get("/v1/traces").await.headers["x-ratelimit-limit"] == "1000000000"
    })
    .await;

    // Changes a member.
    let viewer = there.session_as("v", Role::Viewer);
    viewer.get("/v1/me").await.ok();
    let members = owner.get("/v1/members").await.ok();
    let row = members["members"].as_array().unwrap().iter().find(|it| it["subject"] == "v").unwrap();
    owner.delete(&format!("/v1/members/{}", row["id"].as_str().unwrap())).await.ok();
    wait_for_response(|| viewer.get("/v1/me"), (403, "member_removed")).await;
    there.stop().await;
    here.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn access_change_reaches_other_processes_on_sqlite() {
    access_change_reaches_other_processes(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn access_change_reaches_other_processes_on_postgres() {
    access_change_reaches_other_processes(On::Postgres).await;
}

/// A key that is revoked while in use is rejected immediately, every time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoked_key_is_rejected_immediately_while_in_use() {
    let app = TestApp::on(On::Sqlite).await;
    let owner = app.session(Role::Owner);
    for _ in 0..30 {
        let made = owner.post("/v1/apikeys", &json!({"name": "k"})).await.ok();
        let key = app.bearer(made["secret"].as_str().unwrap());
        let using = tokio::spawn({
            let key = key.clone();
            async move { while key.get("/v1/me").await.status == 200 {} }
        });
        tokio::time::sleep(Duration::from_millis(5)).await;
        owner.delete(&format!("/v1/apikeys/{}", made["id"].as_str().unwrap())).await.ok();
        key.get("/v1/me").await.is(401, "unauthorized");
        using.await.unwrap();
    }
    app.stop().await;
}

/// A cached key requires no query, so it is accepted for a moment even without the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cached_key_needs_no_database() {
    let app = TestApp::on(On::Sqlite).await;
    let key = app.full_key();
    key.get("/v1/models").await.ok();
    app.app.db.read.clone().close().await.unwrap();
    // Neither the key nor the rejection by the route needs a query.
    key.get("/v1/members").await.is(403, "session_required");
    // Cached data that cannot be refreshed expires soon.
    wait_for_response(|| key.get("/v1/members"), (503, "overloaded")).await;
    app.stop().await;
}
