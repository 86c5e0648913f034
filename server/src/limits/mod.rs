//! How many requests a minute are served: a bucket a tenant and group of routes, in fixed
//! windows of one minute, exact over all processes; and a bucket an address for whoever has no
//! valid token.
//!
//! A process takes requests from the database in slices and hands them out on its own. A slice
//! is small at first, grows while the process keeps asking, and shrinks again when little is
//! left, so that nothing lies unused in one process while another refuses. On SQLite there is
//! one process, which needs nobody's leave.

mod address;
mod window;

use std::{sync::Arc, time::Duration};

use api::Plan;
use moka::sync::Cache;
use tokio::sync::Mutex;
use uuid::Uuid;

use self::window::Window;
pub use self::{address::Addresses, window::Verdict};
use crate::{
    access::plans::Bucket,
    error::Result,
    store::{self, Db},
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
    windows: Cache<(Uuid, Bucket), Arc<Mutex<Window>>>,
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
    pub async fn take(&self, tenant: Uuid, plan: Plan, bucket: Bucket, now: i64) -> Result<Verdict> {
        let starts_at = window_of(now);
        let Some(limit) = bucket.limit(plan) else { return Ok(Verdict::unlimited(starts_at)) };
        let window = self.windows.get_with((tenant, bucket), Arc::default);
        // Held while a slice is fetched: who comes meanwhile is served from it.
        let mut window = window.lock().await;
        window.turn_to(starts_at);
        if let Some(wanted) = window.wants(limit) {
            let (granted, taken) = if self.db.is_shared() {
                store::rates::take(&self.db, tenant, bucket, starts_at, wanted, limit).await?
            } else {
                (limit.saturating_sub(window.leased()), limit)
            };
            window.grant(granted, taken);
        }
        Ok(window.take(limit))
    }
}

/// Start of the window of a time in microseconds, in seconds.
fn window_of(now: i64) -> i64 {
    let seconds = now.div_euclid(1_000_000);
    seconds - seconds.rem_euclid(WINDOW)
}
