//! Helpers shared by the suites: the server under test, its databases, and its clients.

pub mod app;
pub mod authority;
pub mod caller;
pub mod canaries;
pub mod conformance;
pub mod declared;
pub mod expectation;
pub mod grpc;
pub mod hang;
pub mod loopback;
pub mod otlp;
pub mod postgres;
pub mod process;
pub mod raw;
pub mod sse;
pub mod stored_spans;
pub mod terminal;

pub use app::{On, TestApp};
pub use caller::{Caller, Reply};

/// Returns the number of rounds of a randomized test: the value of `LOUPE_TEST_ROUNDS`, or else `default`.
#[allow(clippy::disallowed_methods, reason = "the environment selects how thorough a run is")]
pub fn rounds(default: usize) -> usize {
    std::env::var("LOUPE_TEST_ROUNDS").ok().and_then(|it| it.parse().ok()).unwrap_or(default)
}

/// Runs each test on SQLite and on PostgreSQL, each with a new server.
///
/// ```ignore
/// on_both_databases! {
///     async fn json_item_is_stored_and_listed(app: TestApp) { /* … */ }
/// }
/// ```
#[macro_export]
macro_rules! on_both_databases {
    ($($(#[$meta:meta])* async fn $name:ident($app:ident: TestApp) $body:block)+) => {
        $(
            $(#[$meta])*
            mod $name {
                #[allow(unused_imports, reason = "a test uses only some of the imports of its file")]
                use super::*;

                async fn test($app: &$crate::TestApp) $body

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn sqlite() {
                    let app = $crate::TestApp::on($crate::On::Sqlite).await;
                    test(&app).await;
                    app.stop().await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn postgres() {
                    let app = $crate::TestApp::on($crate::On::Postgres).await;
                    test(&app).await;
                    app.stop().await;
                }
            }
        )+
    };
}
