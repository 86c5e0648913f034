//! Cross-origin requests.

use std::time::Duration;

use tests::{
    TestApp,
    raw::{Answer, ask, connect, listen},
};
use tokio::io::AsyncWriteExt;

use crate::{server, token};

const OURS: &str = "https://app.example.com";
const THEIRS: &str = "https://evil.example.com";

async fn preflight(app: &TestApp, path: &str, origin: &str) -> Answer {
    let headers = [
        format!("Origin: {origin}"),
        "Access-Control-Request-Method: PATCH".to_owned(),
        "Access-Control-Request-Headers: authorization,content-type".to_owned(),
    ];
    ask(app, &format!("OPTIONS {path}"), &headers.each_ref().map(String::as_str)).await
}

async fn get(app: &TestApp, path: &str, origin: &str) -> Answer {
    ask(app, &format!("GET {path}"), &[&token(app), &format!("Origin: {origin}")]).await
}

/// Returns the names of a list of headers, sorted.
fn names(list: &str) -> Vec<&str> {
    let mut names: Vec<_> = list.split(',').map(str::trim).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn without_the_setting_nothing_speaks_of_origins() {
    let app = server(&[]).await;
    for answer in [get(&app, "/v1/traces", OURS).await, preflight(&app, "/v1/traces", OURS).await] {
        assert!(!answer.head.contains("access-control"), "{}", answer.head);
        assert!(!answer.header("vary").contains("origin"), "{}", answer.head);
    }
    assert_eq!(preflight(&app, "/v1/traces", OURS).await.status, 405);
    app.stop().await;
}

#[tokio::test]
async fn preflight_needs_no_token_and_lists_allowed_headers() {
    let app = server(&["--cors-origins", &format!("http://localhost:3000,{OURS}")]).await;
    for path in
        ["/v1/traces", "/v1/ingest", "/v1/traces/stream", "/v1/nothing/there", "/v1/projects/x/archive"]
    {
        let answer = preflight(&app, path, OURS).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.head);
        assert_eq!(answer.header("access-control-allow-origin"), OURS, "{path}");
        let methods = answer.header("access-control-allow-methods");
        assert_eq!(names(&methods), ["delete", "get", "patch", "post", "put"], "{path}");
        let headers = answer.header("access-control-allow-headers");
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
        assert_eq!(answer.header("access-control-allow-credentials"), "", "{path}");
        assert!(answer.header("vary").contains("origin"), "{path}");
        assert_ne!(answer.header("x-request-id"), "", "{path}");
    }
    let answer = preflight(&app, "/v1/traces", THEIRS).await;
    assert_eq!(answer.header("access-control-allow-origin"), "", "{}", answer.head);
    assert!(answer.header("vary").contains("origin"));
    app.stop().await;
}

#[tokio::test]
async fn answers_and_errors_can_be_read_by_the_page() {
    let app = server(&["--cors-origins", OURS]).await;
    for (path, status) in [
        ("/v1/traces", 200),
        ("/v1/traces/x", 400),
        ("/v1/nothing", 404),
        ("/v1/ingest", 405),
        ("/v1/traces?limit=x", 400),
    ] {
        let answer = get(&app, path, OURS).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.head);
        assert_eq!(answer.header("access-control-allow-origin"), OURS, "{path}");
        assert!(answer.header("access-control-expose-headers").contains("x-request-id"), "{path}");
        assert!(answer.header("vary").contains("origin"), "{path}: {}", answer.head);
        assert_eq!(get(&app, path, THEIRS).await.header("access-control-allow-origin"), "", "{path}");
    }
    let refused = ask(&app, "GET /v1/traces", &[&format!("Origin: {OURS}")]).await;
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (401, OURS.to_owned()));
    assert!(!refused.body.is_empty());
    // A cache must not use a response for another origin.
    assert!(ask(&app, "GET /healthz", &[]).await.header("vary").contains("origin"));
    app.stop().await;
}

#[tokio::test]
async fn events_can_be_followed_by_the_page() {
    let app = server(&["--cors-origins", OURS]).await;
    let mut socket = connect(&app).await;
    let request =
        format!("GET /v1/traces/stream HTTP/1.1\r\nHost: x\r\n{}\r\nOrigin: {OURS}\r\n\r\n", token(&app));
    socket.write_all(request.as_bytes()).await.unwrap();
    let head = listen(&mut socket, Duration::from_secs(1)).await;
    assert!(
        head.contains("text/event-stream") && head.contains(&format!("access-control-allow-origin: {OURS}")),
        "{head}"
    );
    drop(socket);
    app.stop().await;
}

#[tokio::test]
async fn cors_star_allows_every_origin_without_vary() {
    let app = server(&["--cors-origins", "*"]).await;
    for answer in [get(&app, "/v1/traces", THEIRS).await, preflight(&app, "/v1/traces", THEIRS).await] {
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        assert_eq!(answer.header("access-control-allow-credentials"), "");
        assert!(!answer.header("vary").contains("origin"), "{}", answer.head);
    }
    app.stop().await;
}
