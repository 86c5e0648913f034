//! A stream ends when the credential that opened it loses access.

use std::time::Duration;

use api::Role;
use reqwest::Method;
use serde_json::json;
use server::clock::Clock;
use tests::{Caller, TestApp, on_both_databases, sse::EventStream};

/// Opens a stream and reads the existing traces.
async fn open(app: &TestApp, caller: &Caller) -> EventStream {
    let mut stream = EventStream::open(caller, "/v1/traces/stream", None).await;
    let name = json!(format!("at {}", app.clock.now()));
    app.full_key().post("/v1/ingest", &json!({"name": name})).await.ok();
    while stream.next().await.unwrap().data["name"] != name {}
    // Older than the period that a stream repeats.
    app.advance(10);
    stream
}

/// Panics unless the stream ends soon, without traces stored since.
async fn ends(app: &TestApp, mut stream: EventStream, why: &str) {
    app.full_key().post("/v1/ingest", &json!({"name": "after"})).await.ok();
    match stream.within(Duration::from_secs(3)).await {
        Some(None) => {}
        Some(Some(event)) => panic!("{why}: {event:?}"),
        None => panic!("{why}: still open"),
    }
    app.advance(10);
}

on_both_databases! {
    async fn stream_ends_when_its_token_is_revoked(app: TestApp) {
        let owner = app.session(Role::Owner);
        let made = owner.post("/v1/apikeys", &json!({"name": "k"})).await.ok();
        let stream = open(app, &app.bearer(made["secret"].as_str().unwrap())).await;
        owner.delete(&format!("/v1/apikeys/{}", made["id"].as_str().unwrap())).await.ok();
        ends(app, stream, "a revoked key").await;

        let stream = open(app, &app.session_as("v", Role::Viewer)).await;
        let members = owner.get("/v1/members").await.ok();
        let row = members["members"].as_array().unwrap().iter().find(|it| it["subject"] == "v").unwrap();
        owner.delete(&format!("/v1/members/{}", row["id"].as_str().unwrap())).await.ok();
        ends(app, stream, "a removed member").await;

        let expires = json!({"name": "k", "expires_at": "2026-06-15T12:30:00Z"});
        let made = owner.post("/v1/apikeys", &expires).await.ok();
        let stream = open(app, &app.bearer(made["secret"].as_str().unwrap())).await;
        app.advance(1_800);
        ends(app, stream, "an expired key").await;

        let stream = open(app, &app.session(Role::Viewer)).await;
        app.advance(3_700);
        ends(app, stream, "an expired session").await;
        // The stream of another credential continues.
        let mut stream = open(app, &app.full_key()).await;
        assert!(stream.within(Duration::from_millis(1_500)).await.is_none());
    }

    /// An export that waits for its reader ends when its token is revoked.
    async fn export_is_interrupted_when_its_token_is_revoked(app: TestApp) {
        let owner = app.session(Role::Owner);
        let made = owner.post("/v1/apikeys", &json!({"name": "k"})).await.ok();
        let text = "x".repeat(100_000);
        for _ in 0..2 {
            let items: Vec<_> = (0..75).map(|_| json!({"input": text})).collect();
            app.full_key().post("/v1/ingest/batch", &json!({"traces": items})).await.ok();
        }
        let key = app.bearer(made["secret"].as_str().unwrap());
        let export = key.request(Method::GET, "/v1/traces/export").send().await.unwrap();
        owner.delete(&format!("/v1/apikeys/{}", made["id"].as_str().unwrap())).await.ok();
        export.bytes().await.unwrap_err();
        let whole = app.full_key().request(Method::GET, "/v1/traces/export").send().await.unwrap();
        assert_eq!(whole.bytes().await.unwrap().iter().filter(|it| **it == b'\n').count(), 150);
    }
}
