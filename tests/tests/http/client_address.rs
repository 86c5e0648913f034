//! Counting of unauthenticated requests by address, with and without proxies.

use tests::{TestApp, raw::send_request};

use crate::{server, token};

/// Sends a request without a token and with these headers. Returns the status.
async fn send_without_token(app: &TestApp, headers: &[&str]) -> u16 {
    send_request(app, "GET /v1/traces", headers).await.status
}

const FIRST_CLIENT: &str = "X-Forwarded-For: 203.0.113.1";
const SECOND_CLIENT: &str = "X-Forwarded-For: 198.51.100.9, 203.0.113.2";

#[tokio::test]
async fn clients_of_trusted_proxy_are_counted_separately() {
    let app = server(&["--trusted-proxies", "127.0.0.0/8,::1", "--unauthenticated-per-minute", "3"]).await;
    for expected in [401, 401, 401, 429, 429] {
        assert_eq!(send_without_token(&app, &[FIRST_CLIENT]).await, expected);
    }
    assert_eq!(send_without_token(&app, &[SECOND_CLIENT]).await, 401);
    assert_eq!(send_without_token(&app, &["Forwarded: for=203.0.113.3;proto=https"]).await, 401);
    // Addresses that the client adds to the header change nothing.
    assert_eq!(send_without_token(&app, &["X-Forwarded-For: 192.0.2.77, 203.0.113.1"]).await, 429);
    assert_eq!(send_without_token(&app, &["X-Forwarded-For: 192.0.2.77", FIRST_CLIENT]).await, 429);
    assert_eq!(send_without_token(&app, &[FIRST_CLIENT, "Forwarded: for=192.0.2.77"]).await, 429);
    // IPv6 addresses of one network are counted together.
    for (host, expected) in [("1", 401), ("2", 401), ("ffff:ffff:ffff:ffff", 401), ("3", 429)] {
        let host = if host.len() == 1 { format!(":{host}") } else { host.to_owned() };
        assert_eq!(
            send_without_token(&app, &[&format!("X-Forwarded-For: 2001:db8:0:7:{host}")]).await,
            expected,
            "{host}"
        );
    }
    assert_eq!(send_without_token(&app, &["X-Forwarded-For: 2001:db8:0:8::1"]).await, 401);
    app.stop().await;
}

#[tokio::test]
async fn forwarded_header_of_untrusted_client_is_ignored() {
    for proxies in ["", "10.0.0.0/8"] {
        let app = server(&["--trusted-proxies", proxies, "--unauthenticated-per-minute", "3"]).await;
        for n in 0..3 {
            assert_eq!(send_without_token(&app, &[&format!("X-Forwarded-For: 203.0.113.{n}")]).await, 401);
        }
        assert_eq!(send_without_token(&app, &[SECOND_CLIENT]).await, 429);
        assert_eq!(send_without_token(&app, &["Forwarded: for=203.0.113.50"]).await, 429);
        // Requests with a valid token are not counted by address.
        assert_eq!(send_request(&app, "GET /v1/traces", &[&token(&app)]).await.status, 200);
        app.stop().await;
    }
}

#[tokio::test]
async fn preflight_does_not_count_against_rate_limit() {
    let app = server(&["--cors-origins", "*", "--unauthenticated-per-minute", "3"]).await;
    for _ in 0..20 {
        let headers = ["Origin: https://app.example.com", "Access-Control-Request-Method: GET"];
        assert_eq!(send_request(&app, "OPTIONS /v1/traces", &headers).await.status, 200);
    }
    let refused = send_request(&app, "GET /v1/traces", &["Origin: https://app.example.com"]).await;
    assert_eq!((refused.status, refused.header("x-ratelimit-remaining")), (401, "2".to_owned()));
    assert!(refused.header("access-control-expose-headers").contains("x-ratelimit-remaining"));
    app.stop().await;
}
