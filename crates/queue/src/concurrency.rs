//! Limits the number of concurrent operations that a process runs for one tenant or provider.
//!
//! Without such a limit, a provider that takes a minute for each response could occupy all workers.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The permits in use, by key.
#[derive(Debug)]
pub struct ConcurrencyLimits<K>(Mutex<HashMap<K, usize>>);

/// A permit, which is returned when the value is dropped.
#[derive(Debug)]
pub struct ConcurrencyPermit<'a, K: Hash + Eq> {
    limits: &'a ConcurrencyLimits<K>,
    key: K,
}

impl<K> Default for ConcurrencyLimits<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq + Clone> ConcurrencyLimits<K> {
    /// Takes a permit; `None` if `limit` permits of the key are in use.
    pub fn take(&self, key: &K, limit: usize) -> Option<ConcurrencyPermit<'_, K>> {
        let mut limits = self.lock();
        let taken = limits.entry(key.clone()).or_default();
        if *taken >= limit {
            return None;
        }
        *taken += 1;
        Some(ConcurrencyPermit { limits: self, key: key.clone() })
    }
}

impl<K: Hash + Eq> ConcurrencyLimits<K> {
    /// Returns the keys that have permits in use, with their number.
    pub fn all(&self) -> Vec<(K, usize)>
    where
        K: Clone,
    {
        self.lock().iter().map(|(key, taken)| (key.clone(), *taken)).collect()
    }

    /// Returns the number of permits in use for a key.
    pub fn taken(&self, key: &K) -> usize {
        self.lock().get(key).copied().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq> Drop for ConcurrencyPermit<'_, K> {
    fn drop(&mut self) {
        let mut limits = self.limits.lock();
        if let Some(taken) = limits.get_mut(&self.key) {
            *taken -= 1;
            if *taken == 0 {
                limits.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_applies_to_each_key() {
        let limits = ConcurrencyLimits::default();
        let (one, other) = (1, 2);
        let first = limits.take(&one, 2).unwrap();
        let _second = limits.take(&one, 2).unwrap();
        assert!(limits.take(&one, 2).is_none() && limits.take(&other, 2).is_some());
        assert_eq!((limits.taken(&one), limits.taken(&other)), (2, 0));
        drop(first);
        assert!(limits.take(&one, 2).is_some());
        assert_eq!(limits.lock().len(), 1);
    }
}
