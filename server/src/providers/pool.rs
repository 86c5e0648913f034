//! Idle connections for reuse.
//!
//! Their addresses were checked when they were opened, and the peer's certificate is still the same.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::link::Link;

/// Maximum time that a connection is idle.
const MAX_IDLE_TIME: Duration = Duration::from_secs(15);

/// Maximum number of idle connections per origin.
const MAX_IDLE_PER_ORIGIN: usize = 4;

/// Maximum number of idle connections in all.
const MAX_IDLE_CONNECTIONS: usize = 128;

/// Idle connections, the oldest first.
#[derive(Default)]
pub struct Pool(Mutex<Vec<Idle>>);

struct Idle {
    place: String,
    since: Instant,
    link: Link,
}

impl Pool {
    /// Takes a usable connection to this origin (scheme, host and port), the newest first.
    pub fn take(&self, place: &str) -> Option<Link> {
        let mut idle = self.fresh();
        while let Some(at) = idle.iter().rposition(|it| it.place == place) {
            let mut link = idle.remove(at).link;
            if link.is_idle() {
                return Some(link);
            }
        }
        None
    }

    /// Stores a connection to this origin, if it can be reused.
    pub fn put(&self, place: &str, mut link: Link) {
        if !link.is_idle() {
            return;
        }
        let mut idle = self.fresh();
        let of_place = idle.iter().filter(|it| it.place == place).count();
        if of_place >= MAX_IDLE_PER_ORIGIN {
            return;
        }
        if idle.len() >= MAX_IDLE_CONNECTIONS {
            idle.remove(0);
        }
        idle.push(Idle { place: place.to_owned(), since: Instant::now(), link });
    }

    /// Returns the connections that are not too old.
    fn fresh(&self) -> MutexGuard<'_, Vec<Idle>> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|it| it.since.elapsed() < MAX_IDLE_TIME);
        idle
    }
}
