//! Measures authentication and limits: the time to determine the caller and to check the rate limits, without
//! HTTP. See docs/benchmarks.md.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::time::Instant;

use api::{Plan, Role};
use axum::http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use server::{
    access::session::Claims,
    clock::Clock,
    http::{auth, outer_layer::RequestId},
};
use store::rates::RateBucket;
use tests::{On, TestApp};

/// Number of calls of each kind.
const CALLS_PER_KIND: u32 = 200_000;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let app = TestApp::with(On::Sqlite, Plan::Business, &[]).await;
    let claims = Claims {
        sub: "bench".to_owned(),
        tenant_id: app.tenant.to_string(),
        role: Role::Member.to_string(),
        exp: app.clock.now() / 1_000_000 + 3_600,
        nbf: None,
    };
    let session = app.app.sessions.issue(&claims).unwrap();
    identify(&app, "a known API key", app.key_text()).await;
    identify(&app, "a session token of the local issuer", &session).await;
    let started = Instant::now();
    for n in 0..CALLS_PER_KIND {
        let now = app.clock.now() + i64::from(n / 100_000) * 60_000_000;
        let verdict =
            app.app.rate_limits.count(app.tenant, Plan::Business, RateBucket::Ingest, now).await.unwrap();
        assert!(verdict.allowed);
    }
    report("a request within its limit", started);
    app.stop().await;
}

async fn identify(app: &TestApp, what: &str, token: &str) {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).unwrap());
    let started = Instant::now();
    for _ in 0..CALLS_PER_KIND {
        auth::identify(&app.app, &headers, RequestId::default()).await.unwrap();
    }
    report(what, started);
}

fn report(what: &str, started: Instant) {
    println!("{what:<40} {:>8.2} µs", started.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS_PER_KIND));
}
