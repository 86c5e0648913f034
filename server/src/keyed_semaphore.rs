//! A semaphore per key: limits the number of concurrent operations of one tenant.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Semaphores with the same number of permits, created when a key is first used.
#[derive(Debug)]
pub struct KeyedSemaphore<K: Hash + Eq> {
    permits: usize,
    entries: Arc<Entries<K>>,
}

type Entries<K> = Mutex<HashMap<K, KeyState>>;

#[derive(Debug)]
struct KeyState {
    semaphore: Arc<Semaphore>,
    /// Number of operations that hold a permit or wait for one.
    users: usize,
}

/// A permit, held until it is dropped.
#[derive(Debug)]
pub struct KeyedPermit<K: Hash + Eq> {
    // Fields drop in this order: the last user removes the semaphore.
    _permit: OwnedSemaphorePermit,
    _user: PermitUser<K>,
}

/// An operation that has a permit or waits for one.
#[derive(Debug)]
struct PermitUser<K: Hash + Eq> {
    entries: Arc<Entries<K>>,
    key: K,
}

impl<K: Hash + Eq + Clone> KeyedSemaphore<K> {
    /// Creates a semaphore with `permits` permits for each key.
    pub fn new(permits: usize) -> Self {
        Self { permits, entries: Arc::default() }
    }

    /// Returns a permit if one is free and no operation waits for it.
    pub fn try_acquire(&self, key: &K) -> Option<KeyedPermit<K>> {
        let (semaphore, user) = self.register(key, self.permits)?;
        let permit = semaphore.try_acquire_owned().ok()?;
        Some(KeyedPermit { _permit: permit, _user: user })
    }

    /// Waits up to `timeout` for a permit. Returns none in time, or if `max_waiting` operations of the key
    /// wait already.
    pub async fn acquire(&self, key: &K, max_waiting: usize, timeout: Duration) -> Option<KeyedPermit<K>> {
        let (semaphore, user) = self.register(key, self.permits + max_waiting)?;
        let permit = tokio::time::timeout(timeout, semaphore.acquire_owned()).await.ok()?.ok()?;
        Some(KeyedPermit { _permit: permit, _user: user })
    }

    fn register(&self, key: &K, max_users: usize) -> Option<(Arc<Semaphore>, PermitUser<K>)> {
        let mut entries = lock(&self.entries);
        let entry = match entries.get_mut(key) {
            Some(entry) => entry,
            None => entries
                .entry(key.clone())
                .or_insert_with(|| KeyState { semaphore: Arc::new(Semaphore::new(self.permits)), users: 0 }),
        };
        if entry.users >= max_users {
            return None;
        }
        entry.users += 1;
        let semaphore = Arc::clone(&entry.semaphore);
        Some((semaphore, PermitUser { entries: Arc::clone(&self.entries), key: key.clone() }))
    }
}

impl<K: Hash + Eq> Drop for PermitUser<K> {
    fn drop(&mut self) {
        let mut entries = lock(&self.entries);
        if let Some(entry) = entries.get_mut(&self.key) {
            entry.users -= 1;
            if entry.users == 0 {
                entries.remove(&self.key);
            }
        }
    }
}

fn lock<K>(entries: &Entries<K>) -> MutexGuard<'_, HashMap<K, KeyState>> {
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_key_has_permits_of_its_own() {
        let semaphore = KeyedSemaphore::new(2);
        let (first, _second) = (semaphore.try_acquire(&1).unwrap(), semaphore.try_acquire(&1).unwrap());
        assert!(semaphore.try_acquire(&1).is_none() && semaphore.try_acquire(&2).is_some());
        let soon = Duration::from_millis(10);
        assert!(semaphore.acquire(&1, 4, soon).await.is_none());
        assert!(semaphore.acquire(&1, 0, Duration::from_secs(60)).await.is_none());
        let (waited, ()) = tokio::join!(semaphore.acquire(&1, 4, Duration::from_secs(60)), async {
            tokio::time::sleep(soon).await;
            drop(first);
        });
        assert!(waited.is_some());
        drop(waited);
        assert_eq!(lock(&semaphore.entries).len(), 1);
    }
}
