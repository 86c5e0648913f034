//! The directories of runs that lists have read, in memory.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use uuid::Uuid;

use super::entry::IndexEntry;

/// Maximum size of the cached directories of a process in bytes.
const MAX_CACHED_BYTES: usize = 16 * 1024 * 1024;

/// The directories of runs that lists of this process used. Runs never change, so they stay valid.
#[derive(Debug, Default)]
pub struct DirectoryCache(Mutex<CachedDirectories>);

#[derive(Debug, Default)]
struct CachedDirectories {
    by_run: HashMap<(Uuid, i64), Arc<Vec<IndexEntry>>>,
    bytes: usize,
}

impl DirectoryCache {
    /// Returns the directory of a tenant's run.
    pub fn get(&self, key: (Uuid, i64)) -> Option<Arc<Vec<IndexEntry>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_run.get(&key).cloned()
    }

    /// Adds the directory of a tenant's run. A full cache is emptied first.
    pub fn insert(&self, key: (Uuid, i64), directory: Arc<Vec<IndexEntry>>) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = directory.len() * size_of::<IndexEntry>();
        if cache.bytes + bytes > MAX_CACHED_BYTES {
            *cache = CachedDirectories::default();
        }
        if cache.by_run.insert(key, directory).is_none() {
            cache.bytes += bytes;
        }
    }

    /// Frees the cached directories.
    pub fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = CachedDirectories::default();
    }
}
