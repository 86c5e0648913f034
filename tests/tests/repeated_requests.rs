//! Repeated requests: concurrent ones, and those of clients that did not receive the response.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};
use tests::{
    TestApp,
    app::TEST_START_MICROS,
    on_both_databases,
    otlp::{Span, request},
};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet};

on_both_databases! {
    /// Clients disconnect after sending and send again: each trace is stored and counted once.
    async fn request_repeated_after_disconnect_is_stored_once(app: TestApp) {
        let traces = tests::rounds(100);
        app.set_plan(api::Plan::Pro).await;
        let (host, key) = (app.url.strip_prefix("http://").unwrap().to_owned(), app.key_text().to_owned());
        let mut tasks = JoinSet::new();
        for sender in 0..10 {
            let (host, key, again) = (host.clone(), key.clone(), app.full_key());
            tasks.spawn(async move {
                for n in (sender..traces).step_by(10) {
                    let body = format!(r#"{{"id":"cut-{n}","spans":[{{"name":"s"}}]}}"#);
                    let head = format!(
                        "POST /v1/ingest HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                        body.len()
                    );
                    let mut cut = TcpStream::connect(&host).await.unwrap();
                    cut.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
                    drop(cut);
                    let item: Value = serde_json::from_str(&body).unwrap();
                    for _ in 0..3 {
                        let status = again.post("/v1/ingest", &item).await.status;
                        assert!(matches!(status, 201 | 409), "{status}");
                    }
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        let me = app.full_key().get("/v1/me").await.ok();
        assert_eq!(me["usage"]["traces"], traces);
        let mut seen = 0;
        let mut path = "/v1/traces?limit=200".to_owned();
        loop {
            let page = app.full_key().get(&path).await.ok();
            seen += page["traces"].as_array().unwrap().len();
            let Some(next) = page["next_cursor"].as_str() else { break };
            path = format!("/v1/traces?limit=200&cursor={next}");
        }
        assert_eq!(seen, traces);
    }

    async fn concurrent_requests_with_one_id_store_one_trace(app: TestApp) {
        let key = app.full_key();
        for round in 0..20 {
            let mut tasks = JoinSet::new();
            for sender in 0..20 {
                let key = key.clone();
                let item = json!({"id": format!("r{round}"), "name": format!("by {sender}"), "tags": {"by": sender}});
                tasks.spawn(async move { (sender, key.post("/v1/ingest", &item).await.status) });
            }
            let mut made = Vec::new();
            while let Some(done) = tasks.join_next().await {
                match done.unwrap() {
                    (sender, 201) => made.push(sender),
                    (_, status) => assert_eq!(status, 409),
                }
            }
            let [winner] = made[..] else { panic!("{made:?} all got 201") };
            let rows = key.get(&format!("/v1/traces?external_id=r{round}")).await.ok();
            let [row] = rows["traces"].as_array().unwrap().as_slice() else { panic!("{rows}") };
            assert_eq!((&row["name"], &row["tags"]), (&json!(format!("by {winner}")), &json!([format!("by:{winner}")])));
        }
    }

    async fn concurrent_batches_with_shared_ids_store_each_once(app: TestApp) {
        let key = app.full_key();
        let mut tasks = JoinSet::new();
        for sender in 0..8 {
            let key = key.clone();
            // Each sender overlaps with its neighbours, and sends in the opposite order.
            let mut ids: Vec<usize> = (sender * 20..sender * 20 + 60).collect();
            if sender % 2 == 1 {
                ids.reverse();
            }
            let items: Vec<Value> = ids.iter().map(|it| json!({"id": format!("b{it}"), "spans": [{"name": "one"}]})).collect();
            tasks.spawn(async move { key.post("/v1/ingest/batch", &json!({"traces": items})).await.ok() });
        }
        let mut accepted = 0;
        while let Some(done) = tasks.join_next().await {
            let response = done.unwrap();
            assert_eq!(response["rejected"], 0);
            accepted += response["accepted"].as_u64().unwrap();
        }
        assert_eq!(accepted, 200);
        let first = key.get("/v1/traces?limit=200").await.ok();
        assert_eq!((first["traces"].as_array().unwrap().len(), &first["has_more"]), (200, &json!(false)));
        assert!(first["traces"].as_array().unwrap().iter().all(|it| it["span_count"] == 1));
    }

    async fn client_disconnected_before_response_can_repeat(app: TestApp) {
        let key = app.full_key();
        let mut tasks = JoinSet::new();
        for n in 0..50_u64 {
            let item = json!({"id": format!("cut-{n}"), "spans": [{"name": "one"}]}).to_string();
            let spans = request([&Span::new(u128::from(n) + 1, 1, "one", TEST_START_MICROS)]).to_string();
            let sends = [raw(app, "/v1/ingest", &item), raw(app, "/v1/otlp/traces", &spans)];
            let address = app.url.strip_prefix("http://").unwrap().to_owned();
            tasks.spawn(async move {
                for bytes in sends.iter().cycle().take(6) {
                    let mut socket = TcpStream::connect(&address).await.unwrap();
                    socket.write_all(bytes).await.unwrap();
                    // The client disconnects before any response.
                    drop(socket);
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        for n in 0..50_u64 {
            let again = key.post("/v1/ingest", &json!({"id": format!("cut-{n}"), "spans": [{"name": "one"}]})).await;
            assert!(again.status == 201 || again.status == 409, "{} {}", again.status, again.text());
            key.post("/v1/otlp/traces", &request([&Span::new(u128::from(n) + 1, 1, "one", TEST_START_MICROS)])).await.ok();
        }
        let list = key.get("/v1/traces?limit=200").await.ok();
        let traces = list["traces"].as_array().unwrap();
        assert_eq!(traces.len(), 100);
        assert!(traces.iter().all(|it| it["span_count"] == 1));
    }
}

/// Returns a whole request as bytes.
fn raw(app: &TestApp, path: &str, body: &str) -> Vec<u8> {
    let host = app.url.strip_prefix("http://").unwrap();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        app.key_text(),
        body.len()
    )
    .into_bytes()
}
