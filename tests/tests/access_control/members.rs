//! Members and their seats.

use api::{Plan, Role};
use serde_json::{Value, json};
use tests::{Caller, On, TestApp, on_both_databases};

/// Returns the id of a member by subject.
async fn member(owner: &Caller, subject: &str) -> String {
    let list = owner.get("/v1/members").await.ok();
    let found = list["members"].as_array().unwrap().iter().find(|it| it["subject"] == subject).cloned();
    found.unwrap_or_else(|| panic!("no {subject}: {list}"))["id"].as_str().unwrap().to_owned()
}

on_both_databases! {
    async fn signed_in_user_becomes_a_member(app: TestApp) {
        let owner = app.session_as("o@acme", Role::Owner);
        owner.get("/v1/me").await.ok();
        app.advance(10);
        app.session_as("v@acme", Role::Viewer).get("/v1/projects").await.ok();
        let list = owner.get("/v1/members").await.ok();
        let rows = list["members"].as_array().unwrap();
        let brief: Vec<_> = rows.iter().map(|it| (it["subject"].as_str().unwrap(), it["role"].as_str().unwrap(), it["status"].as_str().unwrap())).collect();
        assert_eq!(brief, [("v@acme", "viewer", "active"), ("o@acme", "owner", "active")]);
        assert_eq!(rows[0]["created_at"], "2026-06-15T12:00:10.000000Z");
        // A new role, and the time when a member was last seen, are stored within an hour.
        app.advance(7_200);
        app.session_as("v@acme", Role::Member).get("/v1/projects").await.ok();
        let owner = app.session_as("o@acme", Role::Owner);
        let list = owner.get("/v1/members?limit=1").await.ok();
        let row = &list["members"][0];
        assert_eq!((&row["role"], &row["last_seen_at"]), (&json!("member"), &json!("2026-06-15T14:00:10.000000Z")));
        let next = list["next_cursor"].as_str().unwrap();
        let rest = owner.get(&format!("/v1/members?limit=1&cursor={next}")).await.ok();
        assert_eq!((&rest["members"][0]["subject"], &rest["has_more"]), (&json!("o@acme"), &json!(false)));
        assert_eq!(owner.get("/v1/me").await.ok()["usage"]["members"], 2);
    }

    async fn removed_member_is_rejected_until_restored(app: TestApp) {
        let (owner, viewer) = (app.session(Role::Owner), app.session_as("v", Role::Viewer));
        viewer.get("/v1/me").await.ok();
        let path = format!("/v1/members/{}", member(&owner, "v").await);
        let beside = match app.app.db.is_shared() {
            true => Some(app.beside().await),
            false => None,
        };
        assert_eq!(owner.delete(&path).await.status, 204);
        viewer.get("/v1/me").await.is(403, "member_removed");
        app.session_as("v", Role::Owner).get("/v1/me").await.is(403, "member_removed");
        owner.delete(&path).await.ok();
        if let Some(beside) = beside {
            let there = beside.session_as("v", Role::Viewer);
            there.get("/v1/me").await.is(403, "member_removed");
            beside.stop().await;
        }
        let patch = |body: Value| owner.send(owner.request(reqwest::Method::PATCH, &path).json(&body));
        patch(json!({"status": "gone"})).await.is(422, "validation_failed");
        patch(json!({})).await.is(400, "invalid_body");
        assert_eq!(patch(json!({"status": "active"})).await.ok()["status"], "active");
        viewer.get("/v1/me").await.ok();
        assert_eq!(patch(json!({"status": "removed"})).await.ok()["status"], "removed");
        viewer.get("/v1/me").await.is(403, "member_removed");
        // The keys that a member created belong to the tenant.
        app.full_key().get("/v1/me").await.ok();
    }
}

async fn concurrent_sign_ins_respect_the_seat_limit(database: On) {
    let app = TestApp::with(database, Plan::Starter, &[]).await;
    let owner = app.session(Role::Owner);
    owner.get("/v1/me").await.ok();
    // Many users compete for the last two seats, each with several requests.
    let subjects: Vec<String> = (0..10).map(|it| format!("s{it}")).collect();
    let tries = subjects.iter().chain(&subjects).map(|it| {
        let caller = app.session_as(it, Role::Member);
        async move { caller.get("/v1/me").await }
    });
    let told = futures::future::join_all(tries).await;
    for reply in told.iter().filter(|it| it.status != 200) {
        reply.is(402, "seat_limit_exceeded");
    }
    let list = owner.get("/v1/members").await.ok();
    let seated: Vec<_> = list["members"].as_array().unwrap().iter().map(|it| it["subject"].clone()).collect();
    assert_eq!(seated.len(), 3, "{seated:?}");
    // The next user takes a seat that becomes free; then the previous user has no seat to return to.
    let (out, path) = (
        seated[0].as_str().unwrap(),
        format!("/v1/members/{}", member(&owner, seated[0].as_str().unwrap()).await),
    );
    assert_eq!(owner.delete(&path).await.status, 204);
    app.session_as("next", Role::Member).get("/v1/me").await.ok();
    let restore = owner.request(reqwest::Method::PATCH, &path).json(&json!({"status": "active"}));
    owner.send(restore).await.is(402, "seat_limit_exceeded");
    app.session_as(out, Role::Member).get("/v1/me").await.is(403, "member_removed");
    // Keys need no seat, other plans have no limit of seats, and existing members keep their seats.
    app.full_key().get("/v1/me").await.ok();
    app.set_plan(Plan::Pro).await;
    for n in 0..5 {
        app.session_as(&format!("p{n}"), Role::Viewer).get("/v1/me").await.ok();
    }
    app.set_plan(Plan::Starter).await;
    app.session_as("p4", Role::Viewer).get("/v1/me").await.ok();
    app.session_as("p5", Role::Viewer).get("/v1/me").await.is(402, "seat_limit_exceeded");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_sign_ins_respect_the_seat_limit_on_sqlite() {
    concurrent_sign_ins_respect_the_seat_limit(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_sign_ins_respect_the_seat_limit_on_postgres() {
    concurrent_sign_ins_respect_the_seat_limit(On::Postgres).await;
}
