//! Rate limits: requests per minute for each tenant and bucket, in fixed windows, exact over all
//! processes; and limits that each process counts separately.
//!
//! A process leases requests from the database and counts them locally. A lease is small at first,
//! grows while the process is busy, and shrinks when little is left, so that no requests are unused in
//! one process while another rejects. On SQLite there is one process, which needs no leases.

pub mod feature;
mod local_buckets;
mod window;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::{ErrorCode, Plan};
use moka::sync::Cache;
use store::{Db, DbError, rates::RateBucket};
use tokio::sync::Mutex;
use uuid::Uuid;

use self::window::RateLimitWindow;
pub use self::{local_buckets::LocalBuckets, window::RateLimitDecision};
use crate::{
    access::plans::requests_per_minute,
    error::{Result, problem},
};

/// Value of the rate limit headers if there is no limit.
pub const NO_LIMIT: u64 = 1_000_000_000;
/// Length of a window in seconds.
pub const WINDOW_SECONDS: i64 = 60;
/// Maximum number of buckets in memory.
const MAX_BUCKETS: u64 = 100_000;

/// The tenants' buckets in this process.
pub struct RateLimits {
    db: Db,
    windows: Cache<(Uuid, RateBucket), Arc<Mutex<SharedWindow>>>,
}

/// A bucket, shared by concurrent requests.
#[derive(Default)]
struct SharedWindow {
    window: RateLimitWindow,
    /// Time of the last failed lease.
    failed_at: Option<Instant>,
}

impl RateLimits {
    /// Creates limits without buckets.
    pub fn new(db: Db) -> Self {
        let windows = Cache::builder()
            .max_capacity(MAX_BUCKETS)
            .time_to_idle(Duration::from_secs(2 * WINDOW_SECONDS.unsigned_abs()));
        Self { db, windows: windows.build() }
    }

    /// Counts one request of a tenant's bucket at `now` (microseconds).
    ///
    /// # Errors
    ///
    /// Fails when the database fails.
    pub async fn count(
        &self,
        tenant: Uuid,
        plan: Plan,
        bucket: RateBucket,
        now: i64,
    ) -> Result<RateLimitDecision> {
        let starts_at = window_of(now);
        let Some(limit) = requests_per_minute(bucket, plan) else {
            return Ok(RateLimitDecision::unlimited(starts_at));
        };
        let arrived_at = Instant::now();
        let shared = self.windows.get_with((tenant, bucket), Arc::default);
        // Held during a lease, so that concurrent requests use the same lease.
        let mut shared = shared.lock().await;
        let SharedWindow { window, failed_at } = &mut *shared;
        window.advance_to(starts_at);
        if let Some(requested) = window.lease_needed(limit) {
            if failed_at.is_some_and(|at| at >= arrived_at) {
                // Otherwise each request would wait as long as all before it.
                return Err(problem(
                    ErrorCode::Overloaded,
                    "the database does not respond; try again shortly",
                ));
            }
            let lease = self.lease(tenant, bucket, starts_at, requested, limit, window.leased()).await;
            let (granted, taken) = lease.inspect_err(|_| *failed_at = Some(Instant::now()))?;
            window.record_lease(granted, taken, limit);
        }
        Ok(window.count(limit))
    }

    /// Leases requests; returns how many were granted, and how many all processes have leased.
    async fn lease(
        &self,
        tenant: Uuid,
        bucket: RateBucket,
        starts_at: i64,
        requested: u64,
        limit: u64,
        leased: u64,
    ) -> Result<(u64, u64), DbError> {
        if self.db.is_shared() {
            store::rates::take(&self.db, tenant, bucket, starts_at, requested, limit).await
        } else {
            Ok((limit.saturating_sub(leased), limit))
        }
    }
}

/// Returns the start of the window of a time in microseconds, in seconds.
fn window_of(now: i64) -> i64 {
    let seconds = now.div_euclid(1_000_000);
    seconds - seconds.rem_euclid(WINDOW_SECONDS)
}
