//! Special cases of HTTP/1: methods, versions, framing, several requests on a connection.

use std::time::Duration;

use serde_json::Value;
use tests::{
    TestApp,
    raw::{connect, exchange, ingest_head, read_text, send_request, status},
};
use tokio::io::AsyncWriteExt;

use crate::{server, token};

/// Returns the statuses of the responses on one connection, in order.
fn statuses(text: &str) -> Vec<u16> {
    text.match_indices("HTTP/1.").filter_map(|(at, _)| text.get(at + 9..at + 12)?.parse().ok()).collect()
}

async fn healthy(app: &TestApp) {
    assert_eq!(send_request(app, "GET /healthz", &[]).await.status, 200);
}

#[tokio::test]
async fn head_response_equals_get_without_body() {
    let app = server(&[]).await;
    for path in
        ["/", "/healthz", "/readyz", "/metrics", "/v1/me", "/v1/traces", "/v1/openapi.json", "/v1/projects"]
    {
        let (get, head) = (
            send_request(&app, &format!("GET {path}"), &[&token(&app)]).await,
            send_request(&app, &format!("HEAD {path}"), &[&token(&app)]).await,
        );
        assert_eq!((head.status, head.body.len()), (get.status, 0), "{path}");
        assert_eq!(head.header("content-type"), get.header("content-type"), "{path}");
        assert_ne!(head.header("x-request-id"), "", "{path}");
        if !["/metrics", "/v1/openapi.json"].contains(&path) {
            assert_eq!(head.header("content-length"), get.body.len().to_string(), "{path}");
        }
    }
    let refused = send_request(&app, "HEAD /v1/traces", &[]).await;
    assert_eq!((refused.status, refused.body.len()), (401, 0));
    assert_eq!(send_request(&app, "HEAD /v1/ingest", &[&token(&app)]).await.status, 405);
    app.stop().await;
}

#[tokio::test]
async fn unsupported_method_is_405_with_allow_header() {
    let app = server(&[]).await;
    for method in ["OPTIONS", "TRACE", "PATCH", "PROPFIND", "FOO", "get", "M-SEARCH"] {
        let response =
            send_request(&app, &format!("{method} /v1/traces"), &[&token(&app), "X-Canary: echo"]).await;
        assert_eq!(response.status, 405, "{method}: {}", response.head);
        assert!(response.header("allow").contains("get"), "{method}: {}", response.head);
        let body: Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(body["code"], "method_not_allowed", "{method}");
        assert!(!String::from_utf8_lossy(&response.body).contains("echo"), "{method} echoes the request");
    }
    for line in [
        "CONNECT example.com:443",
        "OPTIONS *",
        "GET http://example.com/v1/traces",
        "GET //v1/traces",
        "GET /../v1/me",
    ] {
        let response = send_request(&app, line, &[]).await;
        assert!(matches!(response.status, 400..=405), "{line}: {}", response.head);
    }
    healthy(&app).await;
    app.stop().await;
}

#[tokio::test]
async fn oversized_request_head_is_rejected() {
    let app = server(&[]).await;
    let long = |n: usize| "x".repeat(n);
    for (what, request, expected) in [
        ("a long path", format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", long(16_000)), [404, 404]),
        ("too long a path", format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", long(17_000)), [431, 431]),
        ("a path without an end", format!("GET /{}", long(1 << 20)), [431, 431]),
        ("a long query", format!("GET /healthz?{} HTTP/1.1\r\nHost: x\r\n\r\n", long(16_000)), [200, 200]),
        (
            "90 headers",
            format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{}\r\n", "X: y\r\n".repeat(90)),
            [200, 200],
        ),
        ("110 headers", format!("GET /healthz HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(110)), [431, 431]),
        (
            "100,000 headers",
            format!("GET /healthz HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(100_000)),
            [431, 431],
        ),
        (
            "a header of a mebibyte",
            format!("GET /healthz HTTP/1.1\r\nX: {}\r\n\r\n", long(1 << 20)),
            [431, 431],
        ),
        (
            "a name of a mebibyte",
            format!("GET /healthz HTTP/1.1\r\n{}: x\r\n\r\n", long(1 << 20)),
            [400, 431],
        ),
        ("a method without an end", long(1 << 20), [400, 431]),
    ] {
        let response = exchange(&app, request.as_bytes(), false).await;
        assert!(
            expected.contains(&status(&response)),
            "{what}: {}",
            response.chars().take(300).collect::<String>()
        );
    }
    healthy(&app).await;
    app.stop().await;
}

#[tokio::test]
async fn http_1_0_requests_are_served() {
    let app = server(&[]).await;
    let response = exchange(&app, b"GET /healthz HTTP/1.0\r\n\r\n", false).await;
    assert!(response.starts_with("HTTP/1.0 200") && response.ends_with("{\"status\":\"ok\"}"), "{response}");
    // HTTP/1.0: closed after the response unless requested otherwise, and never chunked.
    let asked = b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /v1/openapi.json HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n";
    let response = exchange(&app, asked, false).await;
    assert_eq!(statuses(&response), [200, 200]);
    assert!(!response.contains("transfer-encoding"), "{}", response.chars().take(900).collect::<String>());
    let response = exchange(&app, b"GET /healthz HTTP/1.0\r\n\r\nGET /healthz HTTP/1.0\r\n\r\n", false).await;
    assert_eq!(statuses(&response).len(), 1, "{response}");
    app.stop().await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let app = server(&[]).await;
    let post = |id: &str| {
        let body = format!("{{\"id\":\"{id}\"}}");
        format!("{}Content-Length: {}\r\n\r\n{body}", ingest_head(&app), body.len())
    };
    let unknown = "GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n";
    let denied = "POST /v1/ingest HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
    let chunked =
        "POST /v1/ingest HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let well = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let all = |n: usize| {
        let (a, b) = (format!("a{n}"), format!("b{n}"));
        [&post(&a), unknown, denied, &post(&b), chunked, &post(&a), well].concat()
    };
    let expected = [201, 404, 401, 201, 401, 409, 200];
    let together = all(0);
    assert_eq!(statuses(&exchange(&app, together.as_bytes(), false).await), expected);
    // The result is the same wherever the bytes are split.
    for at in (1..together.len()).step_by(97) {
        let mut socket = connect(&app).await;
        let text = all(at);
        let (first, second) = text.as_bytes().split_at(at);
        socket.write_all(first).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        socket.write_all(second).await.unwrap();
        assert_eq!(statuses(&read_text(&mut socket, Duration::from_millis(300)).await), expected, "{at}");
    }
    app.stop().await;
}

/// Framing with two interpretations would allow request smuggling.
#[tokio::test]
async fn ambiguous_request_framing_is_rejected() {
    let app = server(&[]).await;
    let inner = "GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n";
    for framing in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5 6\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Content-Length : 5\r\n",
        "X: y\r\n Content-Length: 5\r\n",
        "X: y\rContent-Length: 5\r\n",
    ] {
        let request = format!("{}{framing}\r\nhello{inner}", ingest_head(&app));
        let seen = statuses(&exchange(&app, request.as_bytes(), false).await);
        assert!(seen.first().is_none_or(|it| *it == 400), "{framing:?}: {seen:?}");
        assert!(seen.len() <= 1, "{framing:?}: {seen:?}");
    }
    // With both, the chunks are the body (RFC 9112), and the server reads no further request from the
    // connection.
    let both = format!(
        "{}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n{inner}",
        ingest_head(&app)
    );
    let seen = statuses(&exchange(&app, both.as_bytes(), false).await);
    assert!(matches!(seen.as_slice(), [] | [400] | [201]), "{seen:?}");
    healthy(&app).await;
    app.stop().await;
}

#[tokio::test]
async fn body_with_wrong_length_does_not_affect_next_request() {
    let app = server(&[]).await;
    // A body longer than declared: the rest is parsed as the next request, which is invalid.
    let longer = format!("{}Content-Length: 2\r\n\r\n{{}}garbage\r\n\r\n", ingest_head(&app));
    assert_eq!(statuses(&exchange(&app, longer.as_bytes(), false).await), [201, 400]);
    // A body shorter than declared: nothing is stored.
    let shorter = format!("{}Content-Length: 20\r\n\r\n{{\"id\":\"short\"}}", ingest_head(&app));
    let seen = statuses(&exchange(&app, shorter.as_bytes(), true).await);
    assert!(matches!(seen.as_slice(), [] | [400]), "{seen:?}");
    for bad in ["5\r\nhello0\r\n\r\n", "g\r\n", "-2\r\n{}\r\n0\r\n\r\n", "2\n{}\n0\n\n"] {
        let request = format!(
            "{}Transfer-Encoding: chunked\r\n\r\n{bad}GET /v1/nothing HTTP/1.1\r\n\r\n",
            ingest_head(&app)
        );
        let seen = statuses(&exchange(&app, request.as_bytes(), true).await);
        assert!(matches!(seen.as_slice(), [] | [400]), "{bad:?}: {seen:?}");
    }
    let list = send_request(&app, "GET /v1/traces", &[&token(&app)]).await;
    let list: Value = serde_json::from_slice(&list.body).unwrap();
    assert_eq!(list["traces"].as_array().unwrap().len(), 1);
    app.stop().await;
}
