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

/// Maximum number of idle connections to all origins together.
const MAX_IDLE_CONNECTIONS: usize = 128;

/// Idle connections.
pub struct Pool {
    /// Maximum number of idle connections per origin.
    max_per_origin: usize,
    /// The connections, the oldest first.
    idle: Mutex<Vec<IdleConnection>>,
}

struct IdleConnection {
    origin: String,
    since: Instant,
    connection: Connection,
}

impl Pool {
    /// Creates a pool for at most this number of idle connections per origin.
    pub fn new(max_per_origin: usize) -> Self {
        Self { max_per_origin, idle: Mutex::default() }
    }

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
        if of_origin >= self.max_per_origin {
            return;
        }
        if idle.len() >= MAX_IDLE_CONNECTIONS {
            idle.remove(0);
        }
        idle.push(IdleConnection { origin: origin.to_owned(), since: Instant::now(), connection });
    }

    /// Closes all idle connections.
    pub fn clear(&self) {
        self.fresh().clear();
    }

    /// Returns the connections that are not too old.
    fn fresh(&self) -> MutexGuard<'_, Vec<IdleConnection>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|it| it.since.elapsed() < MAX_IDLE_TIME);
        idle
    }
}
