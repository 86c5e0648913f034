//! Connections kept for the next request to the same place.
//!
//! They were judged when they were dialled, and lead to the same certificate's holder still.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::link::Link;

/// How long a connection is kept.
const KEPT: Duration = Duration::from_secs(15);

/// Connections kept to one place.
const MOST_FOR_ONE: usize = 4;

/// Connections kept in all.
const MOST: usize = 128;

/// Idle connections, the oldest first.
#[derive(Default)]
pub struct Pool(Mutex<Vec<Idle>>);

struct Idle {
    place: String,
    since: Instant,
    link: Link,
}

impl Pool {
    /// A connection to this place (scheme, host and port) that can be used, the newest first.
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

    /// Keeps a connection to this place, if it can be used again.
    pub fn put(&self, place: &str, mut link: Link) {
        if !link.is_idle() {
            return;
        }
        let mut idle = self.fresh();
        let of_place = idle.iter().filter(|it| it.place == place).count();
        if of_place >= MOST_FOR_ONE {
            return;
        }
        if idle.len() >= MOST {
            idle.remove(0);
        }
        idle.push(Idle { place: place.to_owned(), since: Instant::now(), link });
    }

    /// Those that are not too old.
    fn fresh(&self) -> MutexGuard<'_, Vec<Idle>> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|it| it.since.elapsed() < KEPT);
        idle
    }
}
