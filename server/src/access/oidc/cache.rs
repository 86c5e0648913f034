//! The provider's keys as this process knows them, and when it asks for them again.
//!
//! Requests read what is known and never fetch: they ask the [`Keeper`], one task that fetches once
//! at a time, and only a request that can't be decided otherwise waits for it. While the provider is
//! away what it last said counts on, for a bounded time.

use std::{sync::Arc, time::Duration};

use api::ErrorCode;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::key_set::KeySet;
use crate::{
    access::jwt::Token,
    clock::Clock,
    error::{Result, problem},
    providers::jwks::KeySource,
};

const SECOND: i64 = 1_000_000;
/// Age from which keys are fetched again beside the requests.
const AGEING: i64 = 8 * 60 * SECOND;
/// Age from which requests wait for newer keys: a key that was removed is dead by then.
const OLD: i64 = 10 * 60 * SECOND;
/// Age from which keys are no good. An outage of the provider that lasts longer than a night is
/// known to people; a key that it removed meanwhile should not be good for much longer.
const DEAD: i64 = 24 * 3_600 * SECOND;
/// Pause between two fetches, so that tokens with invented key ids are no way to make many.
const PAUSE: i64 = 30 * SECOND;
/// The same while no keys are known and nobody can sign in.
const PAUSE_WITHOUT_KEYS: i64 = 5 * SECOND;
/// Time after a failure in which requests do not wait for the next fetch: it would fail as well.
const AWAY: i64 = 5 * 60 * SECOND;
/// Longest that a request waits in all.
const WAIT: Duration = Duration::from_secs(3);
/// Longest that a fetch takes.
const FETCH: Duration = Duration::from_secs(5);

/// What is known of the provider's keys.
#[derive(Clone)]
struct Known {
    set: Option<Arc<KeySet>>,
    /// When the fetch began that brought the keys, in microseconds.
    fetched_at: i64,
    /// When the last fetch ended, in microseconds.
    tried_at: i64,
    /// Whether the last fetch brought keys.
    reachable: bool,
    /// Whether a fetch is under way.
    fetching: bool,
}

/// The provider's keys.
pub struct Keys {
    known: watch::Sender<Known>,
    orders: mpsc::Sender<()>,
}

/// Fetches the provider's keys when they are asked for.
pub struct Keeper {
    known: watch::Sender<Known>,
    orders: mpsc::Receiver<()>,
    source: Box<dyn KeySource>,
    clock: Arc<dyn Clock>,
}

impl Keys {
    /// Keys of this source. Their first fetch is ordered already.
    pub fn new(source: Box<dyn KeySource>, clock: Arc<dyn Clock>) -> (Self, Keeper) {
        let nothing = Known { set: None, fetched_at: 0, tried_at: 0, reachable: false, fetching: true };
        let known = watch::Sender::new(nothing);
        // One fetch at a time is under way, so one place is enough.
        let (orders, receiver) = mpsc::channel(1);
        _ = orders.try_send(());
        (Self { known: known.clone(), orders }, Keeper { known, orders: receiver, source, clock })
    }

    /// Whether one of the keys signed the token, at `now` (microseconds).
    ///
    /// # Errors
    /// `overloaded` when that can't be told because the provider does not answer.
    pub async fn have_signed(&self, token: &Token<'_>, now: i64) -> Result<bool> {
        let deadline = Instant::now() + WAIT;
        let mut known = self.known();
        if known.is_older_than(OLD, now) && !known.is_away(now) {
            known = self.refreshed(now, deadline).await;
        } else if known.is_older_than(AGEING, now) {
            self.order(now);
        }
        if let Some(verdict) = known.verdict(token, now).await {
            return Ok(verdict);
        }
        // A new key signs from the moment on in which it is published.
        let known = self.refreshed(now, deadline).await;
        match known.verdict(token, now).await {
            Some(verdict) => Ok(verdict),
            None if known.reachable && !known.fetching => Ok(false),
            None => Err(problem(
                ErrorCode::Overloaded,
                "the identity provider can't be reached to check the token; try again shortly",
            )),
        }
    }

    /// What is known once no fetch is under way; orders one first if that is allowed.
    async fn refreshed(&self, now: i64, deadline: Instant) -> Known {
        self.order(now);
        let mut changes = self.known.subscribe();
        // If it takes too long, what is known has to do.
        _ = tokio::time::timeout_at(deadline, changes.wait_for(|it| !it.fetching)).await;
        self.known()
    }

    /// Has the keys fetched unless that is going on, or has just been done.
    fn order(&self, now: i64) {
        let ordered = self.known.send_if_modified(|it| {
            let allowed = !it.fetching && !it.is_pausing(now);
            it.fetching |= allowed;
            allowed
        });
        if ordered {
            _ = self.orders.try_send(());
        }
    }

    fn known(&self) -> Known {
        self.known.borrow().clone()
    }
}

impl Known {
    /// A clock that was set back makes them older than anything: their age is not known then.
    fn is_older_than(&self, age: i64, now: i64) -> bool {
        self.set.is_none() || !(0..age).contains(&(now - self.fetched_at))
    }

    fn is_pausing(&self, now: i64) -> bool {
        let pause = if self.set.is_some() { PAUSE } else { PAUSE_WITHOUT_KEYS };
        (0..pause).contains(&(now - self.tried_at))
    }

    /// Whether waiting for the provider is in vain.
    fn is_away(&self, now: i64) -> bool {
        !self.reachable && (0..AWAY).contains(&(now - self.tried_at))
    }

    /// Whether one of the keys signed the token; none if it has to be one that is not known.
    async fn verdict(&self, token: &Token<'_>, now: i64) -> Option<bool> {
        let set = self.set.as_ref().filter(|_| !self.is_older_than(DEAD, now))?;
        set.signed(token).await
    }

    /// Logs what a fetch brought, and what follows from it.
    fn tell(&self, fetched: &anyhow::Result<KeySet>, now: i64) {
        match fetched {
            Ok(set) if set.len() == 0 => {
                tracing::warn!("the identity provider publishes no key of use: none of its tokens is good");
            }
            Ok(set) if self.reachable => tracing::debug!(keys = set.len(), "the provider's keys are fresh"),
            Ok(set) => tracing::info!(keys = set.len(), "the identity provider's keys are known"),
            Err(error) => {
                let left = match self.is_older_than(DEAD, now) {
                    true => "its tokens can't be checked",
                    false => "those known so far count on",
                };
                tracing::warn!("the identity provider's keys could not be fetched, {left}: {error:#}");
            }
        }
    }
}

impl Keeper {
    /// Works until `stopping`.
    pub async fn run(mut self, stopping: CancellationToken) {
        let work = async {
            while self.orders.recv().await.is_some() {
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
        let answer = tokio::time::timeout(FETCH, self.source.fetch()).await;
        let set = match answer {
            Ok(answer) => answer.and_then(|it| KeySet::parse(&it)),
            Err(_) => Err(anyhow::anyhow!("no answer within {} s", FETCH.as_secs())),
        };
        let now = self.clock.now();
        self.known.borrow().tell(&set, now);
        self.known.send_modify(|it| {
            (it.tried_at, it.reachable, it.fetching) = (now, set.is_ok(), false);
            if let Ok(set) = set {
                (it.set, it.fetched_at) = (Some(Arc::new(set)), began);
            }
        });
    }
}
