//! Idle connections for reuse.
//!
//! Their addresses were checked when they were opened, and the peer's certificate is still the same.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::connection::Connection;

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
    origin: String,
    since: Instant,
    connection: Connection,
}

impl Pool {
    /// Takes a usable connection to this origin (scheme, host and port), the newest first.
    pub fn take(&self, origin: &str) -> Option<Connection> {
        let mut idle = self.fresh();
        while let Some(at) = idle.iter().rposition(|it| it.origin == origin) {
            let mut connection = idle.remove(at).connection;
            if connection.is_idle() {
                return Some(connection);
            }
        }
        None
    }

    /// Stores a connection to this origin, if it can be reused.
    pub fn put(&self, origin: &str, mut connection: Connection) {
        if !connection.is_idle() {
            return;
        }
        let mut idle = self.fresh();
        let of_origin = idle.iter().filter(|it| it.origin == origin).count();
        if of_origin >= MAX_IDLE_PER_ORIGIN {
            return;
        }
        if idle.len() >= MAX_IDLE_CONNECTIONS {
            idle.remove(0);
        }
        idle.push(Idle { origin: origin.to_owned(), since: Instant::now(), connection });
    }

    /// Closes all idle connections.
    pub fn clear(&self) {
        self.fresh().clear();
    }

    /// Returns the connections that are not too old.
    fn fresh(&self) -> MutexGuard<'_, Vec<Idle>> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|it| it.since.elapsed() < MAX_IDLE_TIME);
        idle
    }
}
