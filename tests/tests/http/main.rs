//! HTTP before the handlers: browsers, proxies, monitoring, and slow or misbehaving clients. The database
//! does not matter here, so most tests run on one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client_address;
mod compression;
mod cors;
mod deadlines;
mod server_metrics;

mod early_rejection;
mod protocol;

use api::Plan;
use tests::{On, TestApp};

/// Starts a server on SQLite with these flags.
async fn server(flags: &[&str]) -> TestApp {
    TestApp::with(On::Sqlite, Plan::Enterprise, flags).await
}

/// Returns the header line with the token of the first key.
fn token(app: &TestApp) -> String {
    format!("Authorization: Bearer {}", app.key_text())
}
