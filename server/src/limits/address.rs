//! A bucket an address, for whoever has no valid token: it slows the guessing of keys.
//!
//! Kept by each process on its own: what it bounds is work, not what somebody pays for. A valid
//! token is served whatever happened before from its address, which others may share.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use moka::sync::Cache;

use super::{WINDOW, window::Verdict, window_of};

/// Addresses that are remembered.
const ADDRESSES: u64 = 100_000;

/// The buckets of the addresses.
pub struct Addresses {
    limit: u64,
    /// By address: the minute in the upper half, the requests in the lower.
    counts: Cache<IpAddr, Arc<AtomicU64>>,
}

impl Addresses {
    /// Of `limit` requests a minute each.
    pub fn new(limit: u32) -> Self {
        let counts = Cache::builder()
            .max_capacity(ADDRESSES)
            .time_to_live(Duration::from_secs(2 * WINDOW.unsigned_abs()));
        Self { limit: u64::from(limit), counts: counts.build() }
    }

    /// Takes one request out of the bucket of an address (of a /64 for IPv6) at `now` (microseconds).
    pub fn take(&self, address: IpAddr, now: i64) -> Verdict {
        let starts_at = window_of(now);
        // Enough bits for every minute of some thousand years.
        let minute = u64::try_from(starts_at / WINDOW).unwrap_or(0) & 0xffff_ffff;
        let count = self.counts.get_with(address, Arc::default);
        let before = count
            .fetch_update(Relaxed, Relaxed, |it| {
                let used = if it >> 32 == minute { it & 0xffff_ffff } else { 0 };
                Some(minute << 32 | (used + 1).min(0xffff_ffff))
            })
            .unwrap_or_default();
        let used = if before >> 32 == minute { before & 0xffff_ffff } else { 0 };
        Verdict {
            allowed: used < self.limit,
            limit: self.limit,
            remaining: self.limit.saturating_sub(used + 1),
            resets_at: starts_at + WINDOW,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_refused_when_it_is_empty_and_full_again_a_minute_later() {
        let addresses = Addresses::new(2);
        let (here, there): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let take = |address, now: i64| addresses.take(address, now * 1_000_000);
        assert_eq!(take(here, 61), Verdict { allowed: true, limit: 2, remaining: 1, resets_at: 120 });
        assert_eq!(take(here, 62).remaining, 0);
        assert!(!take(here, 119).allowed);
        assert!(take(there, 119).allowed);
        assert!(take(here, 120).allowed);
    }
}
