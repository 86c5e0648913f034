//! The stream of traces over HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use api::Plan;
use reqwest::Method;
use serde_json::{Value, json};
use tests::{
    Caller, On, TestApp,
    app::TEST_START_MICROS,
    hang::{HANG_TIMEOUT, must_end, wait_until},
    on_both_databases,
    otlp::{Span, request},
    sse::EventStream,
};

const STREAM_PATH: &str = "/v1/traces/stream";

on_both_databases! {
    async fn stream_sends_trace_on_commit_and_change(app: TestApp) {
        let key = app.full_key();
        let mut stream = EventStream::open(&key, STREAM_PATH, None).await;
        key.post("/v1/otlp/traces", &request([&Span::new(1, 2, "call", TEST_START_MICROS).under(1).with("output.value", "late")])).await.ok();
        let event = stream.next().await.unwrap();
        assert_eq!((event.name.as_str(), &event.data["name"]), ("trace", &Value::Null));
        assert!(event.data.get("spans").is_none() && !event.id.is_empty());
        app.clock.advance(1);
        key.post("/v1/otlp/traces", &request([&Span::new(1, 1, "root", TEST_START_MICROS)])).await.ok();
        let event = stream.next().await.unwrap();
        assert_eq!((&event.data["name"], &event.data["span_count"]), (&json!("root"), &json!(2)));
        let list = key.get("/v1/traces").await.ok();
        assert_eq!(event.data, list["traces"][0], "the event differs from the list");
        // A client's retry changes nothing, so no event is sent.
        app.clock.advance(1);
        key.post("/v1/otlp/traces", &request([&Span::new(1, 1, "root", TEST_START_MICROS)])).await.ok();
        assert!(stream.within(Duration::from_millis(1_500)).await.is_none());
    }

    async fn stream_applies_the_list_filters(app: TestApp) {
        let key = app.full_key();
        let mut by_name = EventStream::open(&key, &format!("{STREAM_PATH}?name=wanted"), None).await;
        let mut by_words = EventStream::open(&key, &format!("{STREAM_PATH}?q=needle&preview=true"), None).await;
        // Before the matching trace, there are more traces than one read returns.
        let hay: Vec<Value> = (0..250).map(|n| json!({"id": format!("hay-{n}"), "name": "hay", "input": "straw"})).collect();
        key.post("/v1/ingest/batch", &json!({"traces": hay})).await.ok();
        app.clock.advance(1);
        let text = format!("a needle {}", "x".repeat(5_000));
        key.post("/v1/ingest", &json!({"id": "the one", "name": "wanted", "input": text})).await.ok();
        let event = by_name.next().await.unwrap();
        assert_eq!((&event.data["external_id"], &event.data["input"]), (&json!("the one"), &json!(text)));
        let event = by_words.next().await.unwrap();
        assert_eq!(event.data["external_id"], "the one");
        assert_eq!(event.data["input"].as_str().unwrap().len(), 2_048);
        key.get(&format!("{STREAM_PATH}?latency_min=x")).await.is(400, "invalid_query");
    }

    async fn resumed_stream_misses_no_trace(app: TestApp) {
        const WRITER_COUNT: usize = 4;
        const TRACES_PER_WRITER: usize = 60;
        let key = app.full_key();
        let mut tasks = tokio::task::JoinSet::new();
        for writer in 0..WRITER_COUNT {
            let (key, clock) = (app.full_key(), std::sync::Arc::clone(&app.clock));
            tasks.spawn(async move {
                for n in 0..TRACES_PER_WRITER {
                    key.post("/v1/ingest", &json!({"id": format!("{writer}-{n}")})).await.ok();
                    clock.advance(20_000);
                }
            });
        }
        let (mut seen, mut last, mut connections): (HashSet<String>, Option<String>, usize) = Default::default();
        let started = Instant::now();
        while seen.len() < WRITER_COUNT * TRACES_PER_WRITER {
            assert!(started.elapsed() < HANG_TIMEOUT, "{} of {} arrived", seen.len(), WRITER_COUNT * TRACES_PER_WRITER);
            let mut stream = EventStream::open(&key, STREAM_PATH, last.as_deref()).await;
            connections += 1;
            // Each round stores more traces than before: the overlap that is read again must not fill the
            // whole read.
            for _ in 0..20 * connections {
                let Some(Some(event)) = stream.within(Duration::from_millis(1_500)).await else { break };
                seen.insert(event.data["external_id"].as_str().unwrap().to_owned());
                last = Some(event.id);
            }
        }
        assert!(connections > 1);
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    }

    async fn stream_ends_with_its_token(app: TestApp) {
        let owner = app.session(api::Role::Owner);
        let made = owner.post("/v1/apikeys", &json!({"name": "k"})).await.ok();
        let key = app.bearer(made["secret"].as_str().unwrap());
        let mut stream = EventStream::open(&key, STREAM_PATH, None).await;
        let mut session = EventStream::open(&app.session(api::Role::Viewer), STREAM_PATH, None).await;
        key.post("/v1/ingest", &json!({"name": "seen"})).await.ok();
        assert_eq!(stream.next().await.unwrap().data["name"], "seen");
        assert_eq!(session.next().await.unwrap().data["name"], "seen");
        owner.delete(&format!("/v1/apikeys/{}", made["id"].as_str().unwrap())).await.ok();
        app.full_key().post("/v1/ingest", &json!({"name": "not for it"})).await.ok();
        assert_eq!(stream.within(Duration::from_secs(3)).await.map(|it| it.is_none()), Some(true));
        assert_eq!(session.next().await.unwrap().data["name"], "not for it");
        // The stream ends when its session token expires.
        app.advance(3_700);
        assert_eq!(session.within(Duration::from_secs(3)).await.map(|it| it.is_none()), Some(true));
    }

    async fn stream_sends_only_own_traces(app: TestApp) {
        let (_, other) = app.other_tenant(Plan::Pro).await;
        let key = app.full_key();
        let mut foreign = EventStream::open(&other, STREAM_PATH, None).await;
        let mut own = EventStream::open(&key, STREAM_PATH, None).await;
        key.post("/v1/ingest", &json!({"name": "mine"})).await.ok();
        let event = own.next().await.unwrap();
        assert!(foreign.within(Duration::from_millis(1_500)).await.is_none());
        let resumed = other.request(Method::GET, STREAM_PATH).header("last-event-id", &event.id);
        other.send(resumed).await.is(400, "invalid_cursor");
        let damaged = key.request(Method::GET, STREAM_PATH).header("last-event-id", format!("{}x", event.id));
        key.send(damaged).await.is(400, "invalid_cursor");
        app.anonymous().get(STREAM_PATH).await.is(401, "unauthorized");
    }

    async fn slow_subscriber_gets_a_resume_cursor(app: TestApp) {
        const TRACE_COUNT: usize = 40;
        let key = app.full_key();
        let mut stream = EventStream::open(&key, STREAM_PATH, None).await;
        // The traces have more bytes than the buffers between server and client can hold.
        for n in 0..TRACE_COUNT {
            let item = json!({"id": format!("large-{n}"), "input": "\u{1}".repeat(200_000)});
            key.post("/v1/ingest", &item).await.ok();
            app.clock.advance(1_000);
        }
        tokio::time::sleep(Duration::from_secs(12)).await;
        let (mut seen, mut cursor) = (HashSet::new(), None);
        while let Some(event) = stream.next().await {
            assert!(cursor.is_none(), "an event follows the event `lagged`");
            match event.name.as_str() {
                "lagged" => {
                    assert_eq!(event.data, json!({"cursor": event.id}));
                    cursor = Some(event.id);
                }
                _ => _ = seen.insert(event.data["external_id"].as_str().unwrap().to_owned()),
            }
        }
        assert!(seen.len() < TRACE_COUNT, "{} were buffered", seen.len());
        let mut stream = EventStream::open(&key, STREAM_PATH, cursor.as_deref()).await;
        while seen.len() < TRACE_COUNT {
            let event = stream.next().await.unwrap();
            seen.insert(event.data["external_id"].as_str().unwrap().to_owned());
        }
    }

    async fn streams_of_a_tenant_are_limited(app: TestApp) {
        let key = app.full_key();
        let mut streams = Vec::new();
        for _ in 0..50 {
            streams.push(EventStream::open(&key, STREAM_PATH, None).await);
        }
        let refused = key.get(STREAM_PATH).await;
        refused.is(429, "rate_limited");
        assert_eq!(refused.headers["retry-after"], "10");
        let (_, other) = app.other_tenant(Plan::Starter).await;
        EventStream::open(&other, STREAM_PATH, None).await;
        drop(streams.pop());
        wait_until("a closed stream no longer counts", async || {
            key.request(Method::GET, STREAM_PATH).send().await.unwrap().status() != 429
        }).await;
    }

    async fn comments_keep_quiet_stream_open(app: TestApp) {
        let mut stream = EventStream::open(&app.full_key(), STREAM_PATH, None).await;
        wait_until("a comment arrives", async || {
            assert!(stream.within(Duration::from_millis(100)).await.is_none(), "an event or the end arrived");
            stream.comments > 0
        }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_ends_with_its_server() {
    for database in [On::Sqlite, On::Postgres] {
        let app = TestApp::on(database).await;
        let mut stream = EventStream::open(&app.full_key(), STREAM_PATH, None).await;
        let (ended, ()) =
            must_end("the server stops", async { tokio::join!(stream.next(), app.stop()) }).await;
        assert!(ended.is_none(), "{database:?}: {ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_sends_commits_of_another_server() {
    let app = TestApp::on(On::Postgres).await;
    let other = app.beside().await;
    let mut stream = EventStream::open(&app.full_key(), STREAM_PATH, None).await;
    for n in 0..5 {
        let there: Caller = other.full_key();
        there.post("/v1/ingest", &json!({"id": format!("there-{n}")})).await.ok();
        assert_eq!(stream.next().await.unwrap().data["external_id"], format!("there-{n}"));
        // The event id of one server is valid at the other.
        app.clock.advance(1);
        app.full_key().post("/v1/ingest", &json!({"id": format!("here-{n}")})).await.ok();
        let event = stream.next().await.unwrap();
        let mut resumed = EventStream::open(&there, STREAM_PATH, Some(&event.id)).await;
        assert!(resumed.next().await.is_some());
        app.clock.advance(4_000_000);
    }
    other.stop().await;
    app.stop().await;
}
