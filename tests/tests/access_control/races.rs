//! Races between the statements of concurrent requests.

use std::{sync::Arc, time::Duration};

use api::{Plan, Role};
use futures::future::join_all;
use reqwest::Method;
use sea_orm::{ActiveModelTrait, EntityTrait, IntoActiveModel, Set};
use serde_json::json;
use server::{
    access::api_key::ApiKey,
    config::{EmbeddingSettings, JudgeSettings},
    first_start,
};
use tests::{
    On, TestApp,
    app::TEST_START_MICROS,
    hang::{must_end, wait_until},
    on_both_databases,
};

/// A time after which a request is waiting for the transaction of the test. If the time is too short, the test
/// checks less and does not fail.
const BLOCKED_DURATION: Duration = Duration::from_millis(400);

/// Unarchiving a project does not undo a change that is committed meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unarchiving_keeps_concurrent_changes() {
    let app = TestApp::on(On::Postgres).await;
    let owner = app.session(Role::Owner);
    let made = owner.post("/v1/projects", &json!({"name": "old"})).await.ok();
    let path = format!("/v1/projects/{}", made["id"].as_str().unwrap());
    owner.post(&format!("{path}/archive"), &json!({})).await.ok();

    let txn = app.app.db.begin().await.unwrap();
    let id = made["id"].as_str().unwrap().parse().unwrap();
    let row = store::projects::lock(&txn, app.tenant, id).await.unwrap().unwrap();
    let mut row = row.into_active_model();
    row.name = Set("new".to_owned());
    row.update(&txn).await.unwrap();
    let unarchived = tokio::spawn({
        let (owner, path) = (owner.clone(), path.clone());
        async move { owner.post(&format!("{path}/unarchive"), &json!({})).await.ok() }
    });
    tokio::time::sleep(BLOCKED_DURATION).await;
    txn.commit().await.unwrap();
    assert_eq!(unarchived.await.unwrap()["name"], "new");
    let now = owner.get(&path).await.ok();
    assert_eq!((&now["name"], &now["status"]), (&json!("new"), &json!("active")));
    app.stop().await;
}

on_both_databases! {
    /// Traces that name a project do not conflict with a request that creates it at the same time.
    async fn project_named_during_creation_is_created_once(app: TestApp) {
        let (key, owner) = (app.full_key(), app.session(Role::Owner));
        for n in 0..tests::rounds(40) {
            let name = json!(format!("p{n}"));
            let all = (0..6).map(|i| {
                let (key, owner, name) = (key.clone(), owner.clone(), name.clone());
                async move {
                    match i % 3 {
                        0 => key.post("/v1/ingest", &json!({"project_name": name})).await,
                        1 => key.post("/v1/ingest/batch", &json!({"traces": [{"project_name": name}]})).await,
                        _ => owner.post("/v1/projects", &json!({"name": name})).await,
                    }
                }
            });
            // PostgreSQL would end a deadlock with an error of one of the requests.
            for reply in join_all(all).await {
                assert!([200, 201, 409].contains(&reply.status), "{} {}", reply.status, reply.text());
                assert!(!reply.text().contains("\"rejected\":1"), "{}", reply.text());
            }
        }
    }
}

/// Requests that wait for a rate limit lease while no database connection is free are rejected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_without_a_lease_are_rejected_and_recover() {
    let app = TestApp::with(On::Postgres, Plan::Starter, &[]).await;
    let key = app.full_key();
    key.get("/v1/apikeys").await.is(403, "session_required");
    let pool = app.app.db.write.get_postgres_connection_pool().clone();
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(pool.acquire().await.unwrap());
    }
    let requests = join_all((0..6).map(|_| key.get("/v1/apikeys")));
    let replies = must_end("requests without a connection are rejected", requests).await;
    assert!(
        replies.iter().any(|it| it.status == 503),
        "{:?}",
        replies.iter().map(|it| it.status).collect::<Vec<_>>()
    );
    drop(held);
    key.get("/v1/apikeys").await.is(403, "session_required");
    app.stop().await;
}

/// Two servers that start on the same empty database at the same time both start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_first_starts_both_succeed() {
    let app = TestApp::on(On::Postgres).await;
    let db = &app.app.db;
    entities::api_key::Entity::delete_many().exec(&db.write).await.unwrap();
    entities::project::Entity::delete_many().exec(&db.write).await.unwrap();
    entities::tenant::Entity::delete_many().exec(&db.write).await.unwrap();
    let key = ApiKey::generate().unwrap();
    let (embedding, judge, sealer) =
        (EmbeddingSettings::default(), JudgeSettings::default(), &app.app.sealer);
    let starts = (0..4)
        .map(|_| first_start::run(db, Some(key.clone()), &embedding, &judge, sealer, TEST_START_MICROS));
    let made: Vec<_> = join_all(starts).await.into_iter().map(|it| it.unwrap()).collect();
    assert_eq!(made.iter().flatten().count(), 1);
    assert_eq!(store::tenants::all(&db.write).await.unwrap().len(), 1);
    app.stop().await;
}

/// Requests that are rejected anyway do not wait for writers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_requests_do_not_wait_for_writers() {
    let app = TestApp::with(On::Sqlite, Plan::Starter, &[]).await;
    let (key, owner) = (app.full_key(), app.session(Role::Owner));
    for subject in ["a", "b"] {
        app.session_as(subject, Role::Viewer).get("/v1/me").await.ok();
    }
    owner.get("/v1/me").await.ok();
    let named: Vec<_> = (0..100).map(|n| json!({"project_name": format!("p{n}")})).collect();
    key.post("/v1/ingest/batch", &json!({"traces": named})).await.ok();
    let writing = app.app.db.begin().await.unwrap();
    // The transaction stays open until both requests are answered.
    let seatless = app.session_as("c", Role::Viewer);
    must_end("a session without a seat is rejected", seatless.get("/v1/me"))
        .await
        .is(402, "seat_limit_exceeded");
    let item = json!({"project_name": "one more"});
    must_end("an item is rejected", key.post("/v1/ingest", &item)).await.is(422, "validation_failed");
    writing.rollback().await.unwrap();
    app.stop().await;
}

/// A request that its caller cancelled can be repeated immediately.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_request_releases_its_idempotency_key() {
    let app = TestApp::on(On::Postgres).await;
    let key = Arc::new(app.full_key());
    let send = |name: &str| {
        let request = key.request(Method::POST, "/v1/ingest").header("idempotency-key", "a");
        request.json(&json!({"id": name}))
    };
    key.send(send("x")).await.ok();
    // An uncommitted transaction restores the row of the key: the next request waits for it and is cancelled.
    let row = entities::idempotency::Entity::find().one(&app.app.db.write).await.unwrap().unwrap();
    entities::idempotency::Entity::delete_many().exec(&app.app.db.write).await.unwrap();
    let txn = app.app.db.begin().await.unwrap();
    entities::idempotency::Entity::insert(row.into_active_model().reset_all())
        .exec_without_returning(&txn)
        .await
        .unwrap();
    assert!(send("y").timeout(BLOCKED_DURATION).send().await.is_err());
    txn.rollback().await.unwrap();
    // The trace was stored already or is stored by this request.
    wait_until("the idempotency key is released", async || {
        let reply = key.send(send("y")).await;
        if reply.status != 201 {
            reply.is(409, "idempotency_in_flight");
        }
        reply.status == 201
    })
    .await;
    app.stop().await;
}
