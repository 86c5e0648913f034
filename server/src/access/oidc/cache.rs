//! The cached keys of the identity provider, and when they are fetched again.
//!
//! Requests use cached keys and never fetch: they notify the [`KeyFetcher`], a task that performs one fetch
//! at a time, and only a request that cannot be decided otherwise waits for it. While the provider is
//! unreachable, the cached keys stay valid for a bounded time.

use std::{sync::Arc, time::Duration};

use api::ErrorCode;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::key_set::KeySet;
use crate::{
    access::jwt::UnverifiedToken,
    clock::Clock,
    error::{Result, problem},
    providers::jwks::KeySource,
};

const SECOND: i64 = 1_000_000;
/// Age in microseconds at which keys are fetched again in the background.
const REFRESH_AGE: i64 = 8 * 60 * SECOND;
/// Age in microseconds at which requests wait for newer keys, so that a removed key becomes invalid.
const MAX_FRESH_AGE: i64 = 10 * 60 * SECOND;
/// Age in microseconds at which keys become invalid. By then, people know about an outage of the
/// provider; a key that was removed meanwhile should not be valid for much longer.
const MAX_KEY_AGE: i64 = 24 * 3_600 * SECOND;
/// Minimum delay in microseconds between two fetches, so that forged key IDs cannot cause many.
const MIN_FETCH_INTERVAL: i64 = 30 * SECOND;
/// Minimum delay in microseconds while no keys are cached and no user can sign in.
const MIN_FETCH_INTERVAL_WITHOUT_KEYS: i64 = 5 * SECOND;
/// Time in microseconds after a failure in which requests do not wait for the next fetch.
const FAILURE_MEMORY: i64 = 5 * 60 * SECOND;
/// Maximum time that a request waits.
const MAX_REQUEST_WAIT: Duration = Duration::from_secs(3);
/// Maximum duration of a fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// The cached state of the provider's keys.
#[derive(Clone)]
struct CachedKeys {
    set: Option<Arc<KeySet>>,
    /// Start of the fetch that returned the keys, in microseconds.
    fetched_at: i64,
    /// End of the last fetch, in microseconds.
    tried_at: i64,
    /// Whether the last fetch succeeded.
    reachable: bool,
    /// Whether a fetch is in progress.
    fetching: bool,
}

/// The provider's keys.
pub struct ProviderKeys {
    state: watch::Sender<CachedKeys>,
    fetch_requests: mpsc::Sender<()>,
}

/// Fetches the provider's keys on request.
pub struct KeyFetcher {
    state: watch::Sender<CachedKeys>,
    fetch_requests: mpsc::Receiver<()>,
    source: Box<dyn KeySource>,
    clock: Arc<dyn Clock>,
}

impl ProviderKeys {
    /// Creates the cache of a source. The first fetch is already requested.
    pub fn new(source: Box<dyn KeySource>, clock: Arc<dyn Clock>) -> (Self, KeyFetcher) {
        let initial = CachedKeys { set: None, fetched_at: 0, tried_at: 0, reachable: false, fetching: true };
        let state = watch::Sender::new(initial);
        // One fetch at a time, so a capacity of one is sufficient.
        let (fetch_requests, receiver) = mpsc::channel(1);
        _ = fetch_requests.try_send(());
        (
            Self { state: state.clone(), fetch_requests },
            KeyFetcher { state, fetch_requests: receiver, source, clock },
        )
    }

    /// Returns whether one of the keys signed the token, at `now` (microseconds).
    ///
    /// # Errors
    ///
    /// Fails with `overloaded` when the keys are unavailable because the provider does not respond.
    pub async fn verify(&self, token: &UnverifiedToken<'_>, now: i64) -> Result<bool> {
        let deadline = Instant::now() + MAX_REQUEST_WAIT;
        let mut state = self.current_keys();
        if state.is_older_than(MAX_FRESH_AGE, now) && !state.is_unreachable(now) {
            state = self.wait_for_fetch(now, deadline).await;
        } else if state.is_older_than(REFRESH_AGE, now) {
            self.request_fetch(now);
        }
        if let Some(verdict) = state.verdict(token, now).await {
            return Ok(verdict);
        }
        // A new key may sign as soon as it is published.
        let state = self.wait_for_fetch(now, deadline).await;
        match state.verdict(token, now).await {
            Some(verdict) => Ok(verdict),
            None if state.reachable && !state.fetching => Ok(false),
            None => Err(problem(
                ErrorCode::Overloaded,
                "the identity provider can't be reached to check the token; try again shortly",
            )),
        }
    }

    /// Requests a fetch if allowed, and returns the state when no fetch is in progress.
    async fn wait_for_fetch(&self, now: i64, deadline: Instant) -> CachedKeys {
        self.request_fetch(now);
        let mut changes = self.state.subscribe();
        // If it takes too long, the current state is used.
        _ = tokio::time::timeout_at(deadline, changes.wait_for(|it| !it.fetching)).await;
        self.current_keys()
    }

    /// Requests a fetch unless one is in progress or was done recently.
    fn request_fetch(&self, now: i64) {
        let is_requested = self.state.send_if_modified(|it| {
            let allowed = !it.fetching && !it.is_too_early(now);
            it.fetching |= allowed;
            allowed
        });
        if is_requested {
            _ = self.fetch_requests.try_send(());
        }
    }

    fn current_keys(&self) -> CachedKeys {
        self.state.borrow().clone()
    }
}

impl CachedKeys {
    /// After a clock was set back, the age is unknown, and the keys count as older.
    fn is_older_than(&self, age: i64, now: i64) -> bool {
        self.set.is_none() || !(0..age).contains(&(now - self.fetched_at))
    }

    fn is_too_early(&self, now: i64) -> bool {
        let min_interval =
            if self.set.is_some() { MIN_FETCH_INTERVAL } else { MIN_FETCH_INTERVAL_WITHOUT_KEYS };
        (0..min_interval).contains(&(now - self.tried_at))
    }

    /// Returns whether waiting for the provider is useless.
    fn is_unreachable(&self, now: i64) -> bool {
        !self.reachable && (0..FAILURE_MEMORY).contains(&(now - self.tried_at))
    }

    /// Returns whether one of the keys signed the token; `None` if an unknown key may have signed it.
    async fn verdict(&self, token: &UnverifiedToken<'_>, now: i64) -> Option<bool> {
        let set = self.set.as_ref().filter(|_| !self.is_older_than(MAX_KEY_AGE, now))?;
        set.signed(token).await
    }

    /// Logs the result of a fetch and its effect.
    fn log_fetch(&self, fetched: &anyhow::Result<KeySet>, now: i64) {
        match fetched {
            Ok(set) if set.len() == 0 => {
                tracing::warn!(
                    "the identity provider publishes no usable key: all of its tokens are rejected"
                );
            }
            Ok(set) if self.reachable => {
                tracing::debug!(keys = set.len(), "the provider's keys were refreshed")
            }
            Ok(set) => tracing::info!(keys = set.len(), "the identity provider's keys are known"),
            Err(error) => {
                let consequence = match self.is_older_than(MAX_KEY_AGE, now) {
                    true => "its tokens can't be verified",
                    false => "the cached keys stay valid",
                };
                tracing::warn!("the identity provider's keys could not be fetched, {consequence}: {error:#}");
            }
        }
    }
}

impl KeyFetcher {
    /// Fetches on request until `stopping` is cancelled.
    pub async fn run(mut self, stopping: CancellationToken) {
        let work = async {
            while self.fetch_requests.recv().await.is_some() {
                self.fetch().await;
            }
        };
        tokio::select! {
            () = work => {}
            () = stopping.cancelled() => {}
        }
    }

    async fn fetch(&self) {
        let began = self.clock.now();
        let response = tokio::time::timeout(FETCH_TIMEOUT, self.source.fetch()).await;
        let set = match response {
            Ok(response) => response.and_then(|it| KeySet::parse(&it)),
            Err(_) => Err(anyhow::anyhow!("no response within {} s", FETCH_TIMEOUT.as_secs())),
        };
        let now = self.clock.now();
        self.state.borrow().log_fetch(&set, now);
        self.state.send_modify(|it| {
            (it.tried_at, it.reachable, it.fetching) = (now, set.is_ok(), false);
            if let Ok(set) = set {
                (it.set, it.fetched_at) = (Some(Arc::new(set)), began);
            }
        });
    }
}
