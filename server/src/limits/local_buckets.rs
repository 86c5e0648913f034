//! Rate limits that each process counts separately: they bound work, not paid requests.

use std::{
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use moka::sync::Cache;

use super::{WINDOW_SECONDS, window::RateLimitDecision, window_of};

/// Maximum number of buckets in memory.
const MAX_BUCKETS: u64 = 100_000;

/// A bucket for each key `K`.
pub struct LocalBuckets<K> {
    limit: u64,
    /// The minute in the upper half, the count in the lower half.
    counts: Cache<K, Arc<AtomicU64>>,
}

impl<K: Hash + Eq + Send + Sync + 'static> LocalBuckets<K> {
    /// Creates buckets of `limit` per minute each.
    pub fn new(limit: u32) -> Self {
        let counts = Cache::builder()
            .max_capacity(MAX_BUCKETS)
            .time_to_idle(Duration::from_secs(2 * WINDOW_SECONDS.unsigned_abs()));
        Self { limit: u64::from(limit), counts: counts.build() }
    }

    /// Counts one request of `key` at `now` (microseconds).
    pub fn count(&self, key: K, now: i64) -> RateLimitDecision {
        let starts_at = window_of(now);
        // Enough bits for every minute of several thousand years.
        let minute = u64::try_from(starts_at / WINDOW_SECONDS).unwrap_or(0) & 0xffff_ffff;
        let counter = self.counts.get_with(key, Arc::default);
        let before = counter
            .fetch_update(Relaxed, Relaxed, |it| {
                let used = if it >> 32 == minute { it & 0xffff_ffff } else { 0 };
                Some(minute << 32 | (used + 1).min(0xffff_ffff))
            })
            .unwrap_or_default();
        let used = if before >> 32 == minute { before & 0xffff_ffff } else { 0 };
        RateLimitDecision {
            allowed: used < self.limit,
            limit: self.limit,
            remaining: self.limit.saturating_sub(used + 1),
            resets_at: starts_at + WINDOW_SECONDS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exhausted_bucket_is_refilled_after_a_minute() {
        let buckets = LocalBuckets::new(2);
        let (here, there) = ("192.0.2.1", "192.0.2.2");
        let count = |key, now: i64| buckets.count(key, now * 1_000_000);
        assert_eq!(
            count(here, 61),
            RateLimitDecision { allowed: true, limit: 2, remaining: 1, resets_at: 120 }
        );
        assert_eq!(count(here, 62).remaining, 0);
        assert!(!count(here, 119).allowed);
        assert!(count(there, 119).allowed);
        assert!(count(here, 120).allowed);
    }
}
