//! The control loop over HTTP, on both databases: policies, control actions, their execution and evaluation.
//!
//! The provider is a real server on the loopback address, which the allow list of the server exempts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "providers run beside the test")]
#![allow(clippy::print_stdout, reason = "measurements are shown")]

mod budgets;
mod concurrency;
mod decisions;
mod depth_limits;
mod execution;
mod interrupted;
mod killed;
mod lists;
mod policies;
mod processes;
mod provider;
mod provider_failures;
mod recorded_requests;
mod regressions;
mod rescoring;
mod scene;
mod story;
mod triggers;

/// Runs each test on both databases, each with a new [`scene::Scene`].
macro_rules! with_provider {
    ($($(#[$meta:meta])* async fn $name:ident($scene:ident: Scene) $body:block)+) => {
        $(
            $(#[$meta])*
            mod $name {
                #[allow(unused_imports, reason = "a test uses only some of the imports of its file")]
                use super::*;
                use crate::scene::Scene;

                async fn test($scene: &Scene) $body

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn sqlite() {
                    let scene = Scene::on(tests::On::Sqlite).await;
                    test(&scene).await;
                    scene.stop().await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn postgres() {
                    let scene = Scene::on(tests::On::Postgres).await;
                    test(&scene).await;
                    scene.stop().await;
                }
            }
        )+
    };
}
pub(crate) use with_provider;
