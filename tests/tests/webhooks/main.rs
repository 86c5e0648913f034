//! Webhooks over HTTP, with real TLS receivers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "receivers run beside the test")]
#![allow(clippy::print_stdout, reason = "measurements are shown")]

mod access;
mod attempts;
mod callbacks;
mod definition;
mod delivered;
mod documented;
mod evaluations;
mod figures;
mod hostile;
mod installation;
mod killed;
mod memory;
mod ping;
mod process;
mod receiver;
mod redacted;
mod redelivery;
mod removed;
mod responses;
mod rotation;
mod signed;
mod urls;
mod workers;

/// Runs each test on both databases, each with a new [`installation::Installation`].
macro_rules! with_receivers {
    ($($(#[$meta:meta])* async fn $name:ident($home:ident: Installation) $body:block)+) => {
        $(
            $(#[$meta])*
            mod $name {
                #[allow(unused_imports, reason = "a test needs some of what its file imports")]
                use super::*;
                use crate::installation::Installation;

                async fn test($home: &Installation) $body

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn sqlite() {
                    let home = Installation::on(tests::On::Sqlite).await;
                    test(&home).await;
                    home.stop().await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn postgres() {
                    let home = Installation::on(tests::On::Postgres).await;
                    test(&home).await;
                    home.stop().await;
                }
            }
        )+
    };
}
pub(crate) use with_receivers;
