//! Tests of the client against a scripted HTTP server.
#![allow(clippy::unwrap_used)]

use std::{net::TcpListener, time::Duration};

use serde_json::Value;
use stub::{StubResponse, StubServer};

use super::*;

/// Starts a server that returns the given responses in order.
fn server(responses: Vec<&'static str>) -> StubServer {
    StubServer::in_order(responses.into_iter().map(StubResponse::raw).collect())
}

fn client(url: &str) -> Client {
    let mut options = Options::new(url);
    options.api_key = Some("lp_key".to_owned());
    options.timeout = Duration::from_secs(5);
    options.retry.base = Duration::from_millis(1);
    Client::new(options).unwrap()
}

const OK_RESPONSE: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"new_field\":1}";
const BUSY_RESPONSE: &str = "HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\nproxy page";
const LIMITED_RESPONSE: &str = "HTTP/1.1 429 Too Many\r\nRetry-After: 0\r\nX-Request-Id: r-1\r\nConnection: close\r\n\r\n{\"error\":\"Slow down\",\"code\":\"rate_limited\"}";

const IN_FLIGHT_RESPONSE: &str = "HTTP/1.1 409 Conflict\r\nConnection: close\r\n\r\n{\"error\":\"Busy\",\"code\":\"idempotency_in_flight\"}";
const MISSING_RESPONSE: &str = "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n{\"code\":\"not_found\"}";
const REPLAYED_RESPONSE: &str =
    "HTTP/1.1 201 Created\r\nIdempotency-Replayed: true\r\nConnection: close\r\n\r\n{}";
const CHUNKED_RESPONSE: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n4\r\none\n\r\n4\r\ntwo\n\r\n0\r\n\r\n";
const TRUNCATED_RESPONSE: &str =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n4\r\none\n\r\n4\r\ntw";

#[tokio::test]
async fn get_is_retried_and_unknown_fields_pass_through() {
    let server = server(vec![BUSY_RESPONSE, LIMITED_RESPONSE, OK_RESPONSE]);
    let value: Value = client(server.url()).value(&calls::trace("a/../b")).await.unwrap();
    assert_eq!(value["new_field"], 1);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[0].head.starts_with("GET /v1/traces/a%2F..%2Fb HTTP/1.1"), "{}", requests[0].head);
    assert_eq!(requests[0].header("authorization"), Some("Bearer lp_key"));
}

#[tokio::test]
async fn retried_post_keeps_its_idempotency_key_and_next_post_gets_a_new_one() {
    let server = server(vec![BUSY_RESPONSE, IN_FLIGHT_RESPONSE, OK_RESPONSE, OK_RESPONSE]);
    let client = client(server.url());
    for _ in 0..2 {
        client.send(&calls::ingest(serde_json::json!({}))).await.unwrap();
    }
    let requests = server.requests();
    let keys: Vec<&str> = requests.iter().map(|it| it.header(IDEMPOTENCY_KEY_HEADER).unwrap()).collect();
    assert!(keys[0] == keys[1] && keys[1] == keys[2], "{keys:?}");
    assert_ne!(keys[2], keys[3]);
}

#[tokio::test]
async fn repeatable_post_is_sent_without_idempotency_key() {
    let server = server(vec![BUSY_RESPONSE, OK_RESPONSE]);
    client(server.url()).send(&calls::ingest(serde_json::json!({ "id": "a" }))).await.unwrap();
    let requests = server.requests();
    assert!(requests.len() == 2 && requests.iter().all(|it| it.header(IDEMPOTENCY_KEY_HEADER).is_none()));
}

#[tokio::test]
async fn retried_delete_that_gets_404_succeeds() {
    let server = server(vec![BUSY_RESPONSE, MISSING_RESPONSE, LIMITED_RESPONSE, MISSING_RESPONSE]);
    let client = client(server.url());
    assert_eq!(client.send(&calls::delete_trace("a")).await.unwrap().status, 204);
    let error = client.send(&calls::delete_trace("b")).await.unwrap_err();
    assert_eq!(error.status(), Some(404), "an attempt that was rejected deleted nothing");
}

#[tokio::test]
async fn idempotency_key_of_caller_is_kept() {
    let server = server(vec![REPLAYED_RESPONSE]);
    let call = calls::ingest(serde_json::json!({})).header("idempotency-key", "mine");
    assert!(client(server.url()).send(&call).await.unwrap().is_replayed());
    let requests = server.requests();
    assert_eq!(requests[0].header(IDEMPOTENCY_KEY_HEADER), Some("mine"));
    assert_eq!(requests[0].head.to_lowercase().matches("idempotency-key").count(), 1);
}

#[tokio::test]
async fn truncated_download_is_an_error() {
    let server = server(vec![BUSY_RESPONSE, CHUNKED_RESPONSE, TRUNCATED_RESPONSE]);
    let client = client(server.url());
    let call = calls::export_traces(&crate::filter::Filter::default(), None, "jsonl");
    let mut download = client.download(&call).await.unwrap();
    let mut body = Vec::new();
    while let Some(bytes) = download.chunk().await.unwrap() {
        body.extend(bytes);
    }
    assert_eq!(body, b"one\ntwo\n");
    let mut broken = client.download(&call).await.unwrap();
    let ended = loop {
        match broken.chunk().await {
            Ok(Some(_)) => {}
            ended => break ended,
        }
    };
    assert!(matches!(ended, Err(Error::Unreachable { sent: true, .. })), "{ended:?}");
}

#[test]
fn retry_delay_follows_rate_limit_reset_without_retry_after() {
    let response = |status, headers: &[(&str, &str)]| {
        let headers = headers.iter().map(|(name, value)| {
            (reqwest::header::HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap())
        });
        ApiError::new(status, &headers.collect(), b"").retry_after.map(|wait| wait.as_secs())
    };
    let window = [("date", "Sat, 21 Nov 2026 14:00:48 GMT"), ("x-ratelimit-reset", "1795269660")];
    assert_eq!(response(429, &window), Some(12));
    assert_eq!(response(500, &window), None);
    assert_eq!(response(429, &[window[0], window[1], ("retry-after", "3")]), Some(3));
    assert_eq!(response(429, &window[1..]), None);
}

#[tokio::test]
async fn api_error_contains_code_message_and_request_id() {
    let server = server(vec![LIMITED_RESPONSE; 3]);
    let error = client(server.url()).call(&calls::me()).await.unwrap_err();
    let response = error.response().unwrap();
    assert_eq!((response.status, response.code.as_str()), (429, "rate_limited"));
    assert_eq!(response.request_id.as_deref(), Some("r-1"));
    assert_eq!(response.message, "Slow down");
}

#[tokio::test]
async fn api_key_is_not_sent_to_session_only_endpoint() {
    let server = server(vec![OK_RESPONSE]);
    let error = client(server.url()).send(&calls::api_keys(&calls::Page::default())).await.unwrap_err();
    assert!(matches!(error, Error::NoCredential { session: true }));
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn refused_connection_is_reported_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = client(&url).send(&calls::me()).await.unwrap_err();
    assert!(matches!(&error, Error::Unreachable { sent: false, .. }), "{error:?}");
}

#[tokio::test]
async fn absolute_path_to_another_server_is_rejected() {
    let call: Call<Value> = Call::get("https://elsewhere.example/v1/me");
    let error = client("http://127.0.0.1:9").send(&call).await.unwrap_err();
    assert!(matches!(error, Error::Address { .. }));
    assert!(Client::new(Options::new("ftp://x")).is_err());
}

#[tokio::test]
async fn stream_without_heartbeats_ends_with_an_error() {
    let hello = StubResponse::events(&[": hello\n\n".to_owned()]).held_open();
    let server = StubServer::in_order(vec![hello]);
    let mut stream =
        client(server.url()).stream(&calls::trace_stream(&Default::default(), None), None).await.unwrap();
    assert!(stream.max_silence >= 2 * HEARTBEAT_INTERVAL && stream.max_silence < 3 * HEARTBEAT_INTERVAL);
    stream.max_silence = Duration::from_millis(100);
    assert!(matches!(stream.next().await, Some(Ok(StreamEvent::Alive))));
    let error = stream.next().await.unwrap().unwrap_err().to_string();
    assert!(error.contains("the live stream sent nothing for 100ms"), "{error}");
}
