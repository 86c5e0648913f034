//! The client against a server of a few lines.
#![allow(clippy::unwrap_used)]

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::Value;

use super::*;

/// Answers one request after the other with what is given, and keeps the requests' heads.
fn server(answers: Vec<&'static str>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = vec![0; 64 * 1024];
            let length = stream.read(&mut buffer).unwrap();
            seen.lock().unwrap().push(String::from_utf8_lossy(&buffer[..length]).into_owned());
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (url, heads)
}

fn client(url: &str) -> Client {
    let mut options = Options::new(url);
    options.api_key = Some("lp_key".to_owned());
    options.timeout = Duration::from_secs(5);
    options.retry.base = Duration::from_millis(1);
    Client::new(options).unwrap()
}

const OK: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"new_field\":1}";
const BUSY: &str = "HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\nproxy page";
const LIMITED: &str = "HTTP/1.1 429 Too Many\r\nRetry-After: 0\r\nX-Request-Id: r-1\r\nConnection: close\r\n\r\n{\"error\":\"Slow down\",\"code\":\"rate_limited\"}";

#[tokio::test]
async fn a_get_is_repeated_and_unknown_fields_pass_through() {
    let (url, heads) = server(vec![BUSY, LIMITED, OK]);
    let value: Value = client(&url).value(&calls::trace("a/../b")).await.unwrap();
    assert_eq!(value["new_field"], 1);
    let heads = heads.lock().unwrap();
    assert_eq!(heads.len(), 3);
    assert!(heads[0].starts_with("GET /v1/traces/a%2F..%2Fb HTTP/1.1"), "{}", heads[0]);
    assert!(heads[0].to_lowercase().contains("authorization: bearer lp_key"));
}

#[tokio::test]
async fn a_post_that_may_have_been_taken_is_not_repeated() {
    let (url, heads) = server(vec![BUSY, OK]);
    let error = client(&url).send(&calls::ingest(serde_json::json!({}))).await.unwrap_err();
    assert_eq!(error.status(), Some(503));
    assert_eq!(heads.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_error_carries_what_the_server_said() {
    let (url, _) = server(vec![LIMITED; 3]);
    let error = client(&url).call(&calls::me()).await.unwrap_err();
    let answer = error.answer().unwrap();
    assert_eq!((answer.status, answer.code.as_str()), (429, "rate_limited"));
    assert_eq!(answer.request_id.as_deref(), Some("r-1"));
    assert_eq!(answer.message, "Slow down");
}

#[tokio::test]
async fn a_key_is_never_sent_where_only_a_session_will_do() {
    let (url, heads) = server(vec![OK]);
    let error = client(&url).send(&calls::api_keys(&calls::Page::default())).await.unwrap_err();
    assert!(matches!(error, Error::NoCredential { session: true }));
    assert!(heads.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_refused_connection_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = client(&url).send(&calls::me()).await.unwrap_err();
    assert!(matches!(&error, Error::Unreachable { sent: false, .. }), "{error:?}");
}

#[tokio::test]
async fn a_path_can_not_leave_the_server() {
    let call: Call<Value> = Call::get("https://elsewhere.example/v1/me");
    let error = client("http://127.0.0.1:9").send(&call).await.unwrap_err();
    assert!(matches!(error, Error::Address { .. }));
    assert!(Client::new(Options::new("ftp://x")).is_err());
}
