//! Compressed responses.

use std::{io::Read, time::Duration};

use serde_json::{Value, json};
use tests::{
    TestApp,
    raw::{connect, read_text, send_request},
};
use tokio::io::AsyncWriteExt;

use crate::{server, token};

/// Starts a server with a page of traces that is large enough to compress.
async fn with_traces() -> TestApp {
    let app = server(&[]).await;
    let traces: Vec<_> =
        (0..50).map(|n| json!({"id": format!("t{n}"), "name": "chat", "input": "x".repeat(500)})).collect();
    app.full_key().post("/v1/ingest/batch", &json!({ "traces": traces })).await.ok();
    app
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut text).unwrap();
    text
}

#[tokio::test]
async fn response_is_compressed_on_request() {
    let app = with_traces().await;
    let plain = send_request(&app, "GET /v1/traces", &[&token(&app)]).await;
    assert_eq!((plain.status, plain.header("content-encoding")), (200, String::new()));
    assert_eq!(plain.header("content-length"), plain.body.len().to_string());
    assert!(plain.header("vary").contains("accept-encoding"), "{}", plain.head);
    for (asked, packing) in [
        ("gzip", "gzip"),
        ("zstd", "zstd"),
        ("gzip, deflate, br", "gzip"),
        ("gzip;q=0.5, zstd;q=0.9", "zstd"),
        ("zstd;q=0, gzip", "gzip"),
        ("GZIP", "gzip"),
        ("x-gzip", "gzip"),
    ] {
        let packed =
            send_request(&app, "GET /v1/traces", &[&token(&app), &format!("Accept-Encoding: {asked}")]).await;
        assert_eq!(packed.header("content-encoding"), packing, "{asked}: {}", packed.head);
        assert!(packed.header("vary").contains("accept-encoding"), "{asked}");
        let text = if packing == "gzip" {
            gunzip(&packed.body)
        } else {
            zstd::decode_all(packed.body.as_slice()).unwrap()
        };
        assert_eq!(text, plain.body, "{asked}");
        assert!(
            packed.body.len() * 4 < plain.body.len(),
            "{asked}: {} of {}",
            packed.body.len(),
            plain.body.len()
        );
    }
    for asked in [
        "",
        "br",
        "deflate",
        "identity",
        "gzip;q=0",
        "nonsense;;q=",
        "*;q=0",
        "identity;q=0",
        "gzip;q=0, identity;q=0",
        "*;q=0, zstd;q=0",
    ] {
        let response =
            send_request(&app, "GET /v1/traces", &[&token(&app), &format!("Accept-Encoding: {asked}")]).await;
        assert_eq!(
            (response.status, response.header("content-encoding"), response.body == plain.body),
            (200, String::new(), true),
            "{asked}"
        );
    }
    app.stop().await;
}

#[tokio::test]
async fn small_responses_heads_and_events_are_not_compressed() {
    let app = with_traces().await;
    for line in ["GET /healthz", "GET /v1/nothing", "GET /v1/me"] {
        let response = send_request(&app, line, &[&token(&app), "Accept-Encoding: gzip"]).await;
        assert_eq!(response.header("content-encoding"), "", "{line}");
        assert!(serde_json::from_slice::<Value>(&response.body).is_ok(), "{line}");
    }
    let head = send_request(&app, "HEAD /v1/traces", &[&token(&app), "Accept-Encoding: gzip"]).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    let mut socket = connect(&app).await;
    let request = format!(
        "GET /v1/traces/stream HTTP/1.1\r\nHost: x\r\n{}\r\nAccept-Encoding: gzip\r\n\r\n",
        token(&app)
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    app.full_key().post("/v1/ingest", &json!({"id": "new", "input": "y".repeat(5_000)})).await.ok();
    let events = read_text(&mut socket, Duration::from_secs(1)).await;
    assert!(events.contains("event: trace") && !events.contains("content-encoding"), "{events}");
    drop(socket);
    app.stop().await;
}
