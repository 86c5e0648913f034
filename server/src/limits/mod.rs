//! How many requests a minute are served: a bucket a tenant and group of routes, in fixed
//! windows of one minute, exact over all processes; and buckets that a process keeps on its own.
//!
//! A process takes requests from the database in slices and hands them out on its own. A slice
//! is small at first, grows while the process keeps asking, and shrinks again when little is
//! left, so that nothing lies unused in one process while another refuses. On SQLite there is
//! one process, which needs nobody's leave.

mod local;
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

use self::window::Window;
pub use self::{local::LocalBuckets, window::Verdict};
use crate::{
    access::plans::requests_per_minute,
    error::{Result, problem},
};

/// What the headers say where there is no limit.
pub const NO_LIMIT: u64 = 1_000_000_000;
/// Length of a window, in seconds.
pub const WINDOW: i64 = 60;
/// Buckets that are remembered.
const BUCKETS: u64 = 100_000;

/// The buckets of the tenants, as far as this process knows them.
pub struct Limits {
    db: Db,
    windows: Cache<(Uuid, RateBucket), Arc<Mutex<Shared>>>,
}

/// What the requests of one bucket share.
#[derive(Default)]
struct Shared {
    window: Window,
    /// When a slice was asked for in vain.
    failed: Option<Instant>,
}

impl Limits {
    /// None yet.
    pub fn new(db: Db) -> Self {
        let windows = Cache::builder()
            .max_capacity(BUCKETS)
            .time_to_idle(Duration::from_secs(2 * WINDOW.unsigned_abs()));
        Self { db, windows: windows.build() }
    }

    /// Takes one request out of a tenant's bucket at `now` (microseconds).
    ///
    /// # Errors
    /// When the database fails.
    pub async fn take(&self, tenant: Uuid, plan: Plan, bucket: RateBucket, now: i64) -> Result<Verdict> {
        let starts_at = window_of(now);
        let Some(limit) = requests_per_minute(bucket, plan) else { return Ok(Verdict::unlimited(starts_at)) };
        let came = Instant::now();
        let shared = self.windows.get_with((tenant, bucket), Arc::default);
        // Held while a slice is fetched: who comes meanwhile is served from it.
        let mut shared = shared.lock().await;
        let Shared { window, failed } = &mut *shared;
        window.turn_to(starts_at);
        if let Some(wanted) = window.wants(limit) {
            if failed.is_some_and(|at| at >= came) {
                // Asking again, each would wait as long as all before it.
                return Err(problem(
                    ErrorCode::Overloaded,
                    "the database does not answer; try again shortly",
                ));
            }
            let slice = self.slice(tenant, bucket, starts_at, wanted, limit, window.leased()).await;
            let (granted, taken) = slice.inspect_err(|_| *failed = Some(Instant::now()))?;
            window.grant(granted, taken, limit);
        }
        Ok(window.take(limit))
    }

    /// How much of what is wanted may be handed out, and how much all processes took.
    async fn slice(
        &self,
        tenant: Uuid,
        bucket: RateBucket,
        starts_at: i64,
        wanted: u64,
        limit: u64,
        leased: u64,
    ) -> Result<(u64, u64), DbError> {
        if self.db.is_shared() {
            store::rates::take(&self.db, tenant, bucket, starts_at, wanted, limit).await
        } else {
            Ok((limit.saturating_sub(leased), limit))
        }
    }
}

/// Start of the window of a time in microseconds, in seconds.
fn window_of(now: i64) -> i64 {
    let seconds = now.div_euclid(1_000_000);
    seconds - seconds.rem_euclid(WINDOW)
}
