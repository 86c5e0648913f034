//! Rate limits.

use api::{Plan, Role};
use reqwest::Method;
use serde_json::json;
use tests::{Caller, On, Reply, TestApp, app::TEST_START_MICROS};

/// Returns limit, remaining and reset of a response.
fn rate_limit_headers(reply: &Reply) -> (u64, u64, i64) {
    let read = |name: &str| reply.headers.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().unwrap();
    (
        read("x-ratelimit-limit").parse().unwrap(),
        read("x-ratelimit-remaining").parse().unwrap(),
        read("x-ratelimit-reset").parse().unwrap(),
    )
}

/// The end of the window that contains the initial time of the tests' clock.
const RESET_SECONDS: i64 = TEST_START_MICROS / 1_000_000 + 60;

/// Sends requests until one is rejected, or `most` times. Returns the number of successes.
async fn count_successes(caller: &Caller, path: &str, most: usize) -> usize {
    for n in 0..most {
        let reply = caller.get(path).await;
        if reply.status == 429 {
            return n;
        }
        assert!(reply.status < 500, "{}", reply.text());
    }
    most
}

async fn rate_limit_is_served_exactly(database: On) {
    let app = TestApp::with(database, Plan::Starter, &[]).await;
    let key = app.full_key();
    // Routes without a bucket of their own share 1,200 requests per minute; two callers share them too.
    let (a, b) = tokio::join!(count_successes(&key, "/v1/projects", 2_000), async {
        count_successes(&app.session(Role::Viewer), "/v1/me", 2_000).await
    });
    assert_eq!(a + b, 1_200);
    let refused = key.get("/v1/me").await;
    refused.is(429, "rate_limited");
    assert_eq!(rate_limit_headers(&refused), (1_200, 0, RESET_SECONDS));
    assert_eq!(refused.headers["retry-after"], "60");
    // Other buckets and other tenants are unaffected.
    assert_eq!(rate_limit_headers(&key.get("/v1/traces").await), (3_600, 3_599, RESET_SECONDS));
    let (_, other) = app.other_tenant(Plan::Starter).await;
    assert_eq!(rate_limit_headers(&other.get("/v1/me").await), (1_200, 1_199, RESET_SECONDS));
    // A request that fails authorization counts too; the next minute has a new limit.
    app.advance(59);
    assert_eq!(key.get("/v1/me").await.headers["retry-after"], "1");
    app.advance(1);
    let forbidden = key.get("/v1/members").await;
    forbidden.is(403, "session_required");
    assert_eq!(rate_limit_headers(&forbidden), (1_200, 1_199, RESET_SECONDS + 60));
    // A clock that is set back starts an older window again, and requests continue.
    app.advance(-3_600);
    let back = rate_limit_headers(&key.get("/v1/me").await);
    assert_eq!((back.0, back.2), (1_200, RESET_SECONDS + 60 - 3_600));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rate_limit_is_served_exactly_on_sqlite() {
    rate_limit_is_served_exactly(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rate_limit_is_served_exactly_on_postgres() {
    rate_limit_is_served_exactly(On::Postgres).await;
}

/// In three windows, eight clients of two processes together send three times the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_serve_one_limit() {
    let one = TestApp::with(On::Postgres, Plan::Starter, &[]).await;
    let two = one.beside().await;
    for _ in 0..3 {
        let clients = (0..8).map(|n| {
            let key = if n % 2 == 0 { one.full_key() } else { two.full_key() };
            tokio::spawn(async move {
                let mut served = 0;
                for _ in 0..450 {
                    let reply = key.get("/v1/projects").await;
                    match reply.status {
                        200 => served += 1,
                        status => assert_eq!(status, 429, "{}", reply.text()),
                    }
                    let (limit, remaining, _) = rate_limit_headers(&reply);
                    assert!(limit == 1_200 && remaining < 1_200);
                }
                served
            })
        });
        let served: usize = futures::future::join_all(clients).await.into_iter().map(|it| it.unwrap()).sum();
        assert_eq!(served, 1_200);
        one.advance(60);
    }
    two.stop().await;
    one.stop().await;
}

async fn every_response_has_rate_limit_headers(database: On) {
    let app = TestApp::with(database, Plan::Starter, &[]).await;
    let (key, query) = (app.full_key(), app.new_key(Role::Owner, &["query"]).await);
    let anyone = app.anonymous();
    for (caller, method, path, status, limit) in [
        (&key, Method::GET, "/v1/traces", 200, 3_600),
        (&key, Method::GET, "/v1/traces?limit=0", 400, 3_600),
        (&key, Method::GET, "/v1/traces/no-uuid", 400, 1_200),
        (&key, Method::GET, "/v1/traces/00000000-0000-7000-8000-000000000000", 404, 1_200),
        (&key, Method::GET, "/v1/nothing/here", 404, 1_200),
        (&key, Method::DELETE, "/v1/ingest", 405, 1_200),
        (&key, Method::POST, "/v1/ingest", 415, 6_000),
        (&key, Method::POST, "/v1/otlp/traces", 415, 6_000),
        (&key, Method::POST, "/api/public/otel/v1/traces", 415, 6_000),
        (&query, Method::POST, "/api/public/otel/v1/traces", 403, 6_000),
        (&anyone, Method::POST, "/api/public/otel/v1/traces", 401, 600),
        (&anyone, Method::GET, "/api/public/otel/v1/traces", 405, 600),
        (&key, Method::GET, "/v1/apikeys", 403, 1_200),
        (&key, Method::HEAD, "/v1/traces", 200, 3_600),
        (&query, Method::POST, "/v1/ingest", 403, 6_000),
        (&anyone, Method::GET, "/v1/traces", 401, 600),
        (&anyone, Method::GET, "/v1/openapi.json", 200, 600),
        (&anyone, Method::GET, "/v1/nothing", 404, 600),
        (&app.bearer("lp_nonsense"), Method::GET, "/v1/me", 401, 600),
        (&app.session_of(uuid::Uuid::from_u128(7), Role::Owner), Method::GET, "/v1/me", 403, 600),
    ] {
        let reply = caller.send(caller.request(method.clone(), path)).await;
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.text());
        let (is, remaining, reset) = rate_limit_headers(&reply);
        assert_eq!((is, reset), (limit, RESET_SECONDS), "{method} {path}");
        assert!(remaining < limit, "{method} {path}: {remaining}");
    }
    for path in ["/healthz", "/readyz", "/"] {
        assert!(!anyone.get(path).await.headers.contains_key("x-ratelimit-limit"), "{path}");
    }
    app.set_plan(Plan::Enterprise).await;
    let unlimited = rate_limit_headers(&key.get("/v1/traces").await);
    assert_eq!(unlimited, (1_000_000_000, 1_000_000_000, RESET_SECONDS));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_has_rate_limit_headers_on_sqlite() {
    every_response_has_rate_limit_headers(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_has_rate_limit_headers_on_postgres() {
    every_response_has_rate_limit_headers(On::Postgres).await;
}

/// Guesses are rejected after some attempts; a valid token at the same address is accepted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guessed_keys_are_rate_limited_by_address() {
    let app = TestApp::with(On::Sqlite, Plan::Enterprise, &["--unauthenticated-per-minute", "5"]).await;
    for _ in 0..5 {
        app.bearer("lp_guess").get("/v1/traces").await.is(401, "unauthorized");
    }
    for path in ["/v1/traces", "/v1/openapi.json", "/v1/nothing"] {
        let refused = app.bearer("lp_guess").get(path).await;
        refused.is(429, "rate_limited");
        assert_eq!(rate_limit_headers(&refused).1, 0);
    }
    app.full_key().get("/v1/traces").await.ok();
    app.full_key().post("/v1/ingest", &json!({})).await.ok();
    app.advance(60);
    app.anonymous().get("/v1/traces").await.is(401, "unauthorized");
    app.stop().await;
}

/// A new plan applies immediately, even when the limit of the previous plan is used up.
async fn changed_plan_changes_the_rate_limit(database: On) {
    let app = TestApp::with(database, Plan::Starter, &[]).await;
    let key = app.full_key();
    assert_eq!(count_successes(&key, "/v1/projects", 1_500).await, 1_200);
    app.set_plan(Plan::Pro).await;
    let reply = key.get("/v1/projects").await;
    reply.ok();
    assert_eq!(rate_limit_headers(&reply), (12_000, 12_000 - 1_201, RESET_SECONDS));
    for _ in 0..9 {
        key.get("/v1/projects").await.ok();
    }
    app.set_plan(Plan::Starter).await;
    let refused = key.get("/v1/projects").await;
    refused.is(429, "rate_limited");
    assert_eq!(rate_limit_headers(&refused), (1_200, 0, RESET_SECONDS));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_plan_changes_the_rate_limit_on_sqlite() {
    changed_plan_changes_the_rate_limit(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_plan_changes_the_rate_limit_on_postgres() {
    changed_plan_changes_the_rate_limit(On::Postgres).await;
}

/// A database outage does not count as a guess: callers get 503 and not a rate limit error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn database_outage_does_not_count_as_failed_authentication() {
    let app = TestApp::with(On::Sqlite, Plan::Starter, &["--unauthenticated-per-minute", "3"]).await;
    let key = app.new_key(Role::Owner, &[]).await;
    app.app.db.read.clone().close().await.unwrap();
    for _ in 0..10 {
        let reply = key.get("/v1/projects").await;
        reply.is(503, "overloaded");
        assert_eq!(rate_limit_headers(&reply).2, RESET_SECONDS);
    }
    app.stop().await;
}
