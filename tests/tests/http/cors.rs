//! Cross-origin requests.

use std::time::Duration;

use tests::{
    TestApp,
    raw::{RawResponse, connect, read_text, send_request},
};
use tokio::io::AsyncWriteExt;

use crate::{server, token};

const ALLOWED_ORIGIN: &str = "https://app.example.com";
const FOREIGN_ORIGIN: &str = "https://evil.example.com";

async fn preflight(app: &TestApp, path: &str, origin: &str) -> RawResponse {
    let headers = [
        format!("Origin: {origin}"),
        "Access-Control-Request-Method: PATCH".to_owned(),
        "Access-Control-Request-Headers: authorization,content-type".to_owned(),
    ];
    send_request(app, &format!("OPTIONS {path}"), &headers.each_ref().map(String::as_str)).await
}

async fn get(app: &TestApp, path: &str, origin: &str) -> RawResponse {
    send_request(app, &format!("GET {path}"), &[&token(app), &format!("Origin: {origin}")]).await
}

/// Returns the names of a list of headers, sorted.
fn names(list: &str) -> Vec<&str> {
    let mut names: Vec<_> = list.split(',').map(str::trim).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn cors_headers_are_absent_without_the_setting() {
    let app = server(&[]).await;
    for response in
        [get(&app, "/v1/traces", ALLOWED_ORIGIN).await, preflight(&app, "/v1/traces", ALLOWED_ORIGIN).await]
    {
        assert!(!response.head.contains("access-control"), "{}", response.head);
        assert!(!response.header("vary").contains("origin"), "{}", response.head);
    }
    assert_eq!(preflight(&app, "/v1/traces", ALLOWED_ORIGIN).await.status, 405);
    app.stop().await;
}

#[tokio::test]
async fn preflight_needs_no_token_and_lists_allowed_headers() {
    let app = server(&["--cors-origins", &format!("http://localhost:3000,{ALLOWED_ORIGIN}")]).await;
    for path in
        ["/v1/traces", "/v1/ingest", "/v1/traces/stream", "/v1/nothing/there", "/v1/projects/x/archive"]
    {
        let response = preflight(&app, path, ALLOWED_ORIGIN).await;
        assert_eq!(response.status, 200, "{path}: {}", response.head);
        assert_eq!(response.header("access-control-allow-origin"), ALLOWED_ORIGIN, "{path}");
        let methods = response.header("access-control-allow-methods");
        assert_eq!(names(&methods), ["delete", "get", "patch", "post", "put"], "{path}");
        let headers = response.header("access-control-allow-headers");
        let allowed = [
            "authorization",
            "content-encoding",
            "content-type",
            "idempotency-key",
            "last-event-id",
            "x-project-name",
            "x-request-id",
        ];
        assert_eq!(names(&headers), allowed, "{path}");
        assert_eq!(response.header("access-control-allow-credentials"), "", "{path}");
        assert!(response.header("vary").contains("origin"), "{path}");
        assert_ne!(response.header("x-request-id"), "", "{path}");
    }
    let response = preflight(&app, "/v1/traces", FOREIGN_ORIGIN).await;
    assert_eq!(response.header("access-control-allow-origin"), "", "{}", response.head);
    assert!(response.header("vary").contains("origin"));
    app.stop().await;
}

#[tokio::test]
async fn allowed_origin_may_read_responses_and_errors() {
    let app = server(&["--cors-origins", ALLOWED_ORIGIN]).await;
    for (path, status) in [
        ("/v1/traces", 200),
        ("/v1/traces/x", 400),
        ("/v1/nothing", 404),
        ("/v1/ingest", 405),
        ("/v1/traces?limit=x", 400),
    ] {
        let response = get(&app, path, ALLOWED_ORIGIN).await;
        assert_eq!(response.status, status, "{path}: {}", response.head);
        assert_eq!(response.header("access-control-allow-origin"), ALLOWED_ORIGIN, "{path}");
        assert!(response.header("access-control-expose-headers").contains("x-request-id"), "{path}");
        assert!(response.header("vary").contains("origin"), "{path}: {}", response.head);
        assert_eq!(get(&app, path, FOREIGN_ORIGIN).await.header("access-control-allow-origin"), "", "{path}");
    }
    let refused = send_request(&app, "GET /v1/traces", &[&format!("Origin: {ALLOWED_ORIGIN}")]).await;
    assert_eq!(
        (refused.status, refused.header("access-control-allow-origin")),
        (401, ALLOWED_ORIGIN.to_owned())
    );
    assert!(!refused.body.is_empty());
    // A cache must not use a response for another origin.
    assert!(send_request(&app, "GET /healthz", &[]).await.header("vary").contains("origin"));
    app.stop().await;
}

#[tokio::test]
async fn allowed_origin_may_read_event_stream() {
    let app = server(&["--cors-origins", ALLOWED_ORIGIN]).await;
    let mut socket = connect(&app).await;
    let request = format!(
        "GET /v1/traces/stream HTTP/1.1\r\nHost: x\r\n{}\r\nOrigin: {ALLOWED_ORIGIN}\r\n\r\n",
        token(&app)
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let head = read_text(&mut socket, Duration::from_secs(1)).await;
    assert!(
        head.contains("text/event-stream")
            && head.contains(&format!("access-control-allow-origin: {ALLOWED_ORIGIN}")),
        "{head}"
    );
    drop(socket);
    app.stop().await;
}

#[tokio::test]
async fn cors_star_allows_every_origin_without_vary() {
    let app = server(&["--cors-origins", "*"]).await;
    for response in
        [get(&app, "/v1/traces", FOREIGN_ORIGIN).await, preflight(&app, "/v1/traces", FOREIGN_ORIGIN).await]
    {
        assert_eq!(response.header("access-control-allow-origin"), "*");
        assert_eq!(response.header("access-control-allow-credentials"), "");
        assert!(!response.header("vary").contains("origin"), "{}", response.head);
    }
    app.stop().await;
}
