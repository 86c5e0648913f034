//! Waiting in tests: a condition or the end of an operation decides, never the time that it took. A generous
//! timeout ends a test that would otherwise hang.

#![allow(clippy::panic, reason = "a test that hangs fails")]

use std::time::Duration;

/// The time after which a test counts as hanging. Nothing that a test asserts depends on it.
pub const HANG_TIMEOUT: Duration = Duration::from_secs(120);

/// Pause between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Polls `condition` until it holds.
///
/// # Panics
/// With `what`, if the condition never holds.
pub async fn wait_until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    must_end(what, async {
        while !condition().await {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
}

/// Awaits a future that must end, although another operation that it could wait for never does.
///
/// # Panics
/// With `what`, if the future does not end.
pub async fn must_end<T>(what: &str, future: impl Future<Output = T>) -> T {
    let result = tokio::time::timeout(HANG_TIMEOUT, future).await;
    result.unwrap_or_else(|_| panic!("{what}: not within {HANG_TIMEOUT:?}"))
}
